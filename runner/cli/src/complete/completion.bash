_runner() {
    local line=${COMP_LINE:0:COMP_POINT} words=() n=0 i part rest reply cut=
    for ((i = 0; i <= COMP_CWORD; i++)); do
        rest=${line#"${line%%[![:space:]]*}"}
        part=${COMP_WORDS[i]}
        if ((i == COMP_CWORD)); then part=$rest; fi
        if ((i == 0)) || [[ $rest != "$line" ]]; then
            words[n]=$part
            n=$((n + 1))
        else
            words[n - 1]+=$part
        fi
        line=${rest#"$part"}
    done
    part=${words[n - 1]}
    # Readline replaces what comes after the last `=` or `:` of a word without quotes.
    if [[ $part != [\"\']* && $part == *[=:]* ]]; then cut=${part%"${part##*[=:]}"}; fi
    for ((i = 0; i < n; i++)); do
        part=${words[i]//\\/}
        part=${part#[\"\']}
        words[i]=${part%[\"\']}
    done
    COMPREPLY=()
    while IFS= read -r reply; do
        COMPREPLY+=("${reply#"$cut"}")
    done < <(_CLAP_COMPLETE_INDEX=$((n - 1)) VARIABLE=bash "$1" -- "${words[@]}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/:.] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o bashdefault -F _runner NAME
