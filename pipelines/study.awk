# Reads `agent AGENT`, followed by the metrics of its evaluations, one training seed after the other, for each agent. Writes the mean utility of each agent
# over the seeds, and the difference of the first agent from the others, paired by seed, with its 95 % interval (Student's t, four degrees of freedom).
function field(line,    text) {
    match(line, /"value":[-+0-9.eE]+/)
    return substr(line, RSTART + 8, RLENGTH - 8) + 0
}
BEGIN { t975 = 2.776 }
/^agent / { agent = $2; order[++agents] = agent; next }
/"name":"utility"/ { utility[agent, ++seeds[agent]] = field($0) }
/"name":"sharpe"/ { sharpe[agent] += field($0) }
/"name":"blind"/ { blind[agent] += field($0) }
/"name":"versus\/best_constant\/utility_low"/ { low[agent] = low[agent] sprintf(" %+.3f", field($0)) }
/"name":"versus\/best_constant\/utility_high"/ { high[agent] = high[agent] sprintf(" %+.3f", field($0)) }
/"name":"baseline\/(best_constant|filter|oracle)\/utility"/ {
    match($0, /baseline\/[a-z_]+/)
    rule[substr($0, RSTART + 9, RLENGTH - 9)] = field($0)
}
END {
    printf "%-16s %8s %8s %6s  %s\n", "agent", "utility", "sharpe", "blind", "least and most of the intervals over the constant rule, by seed"
    for (a = 1; a <= agents; a++) {
        agent = order[a]; n = seeds[agent]; sum = 0
        for (i = 1; i <= n; i++) sum += utility[agent, i]
        mean[agent] = sum / n
        printf "%-16s %8.4f %8.2f %2d/%d  %s /%s\n", agent, mean[agent], sharpe[agent] / n, blind[agent], n, low[agent], high[agent]
    }
    for (name in rule) printf "%-16s %8.4f\n", name, rule[name]
    first = order[1]
    if ("filter" in rule) {
        share = (mean[first] - rule["best_constant"]) / (rule["filter"] - rule["best_constant"])
        printf "\n%s reaches %.0f %% of what the filter earns over the constant rule\n", first, 100 * share
    }
    for (a = 2; a <= agents; a++) {
        agent = order[a]; n = seeds[agent]; sum = squares = 0
        for (i = 1; i <= n; i++) sum += utility[first, i] - utility[agent, i]
        for (i = 1; i <= n; i++) squares += (utility[first, i] - utility[agent, i] - sum / n) ^ 2
        half = n > 1 ? t975 * sqrt(squares / (n - 1) / n) : 0
        printf "%s less %s: %+.4f [%+.4f, %+.4f]\n", first, agent, sum / n, sum / n - half, sum / n + half
    }
}
