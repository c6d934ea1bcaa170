# Reads the metrics of trainings that differ in seed alone, and writes a line of a Markdown table: the mean return of the last 100
# episodes at some moments of training, over the seeds, with its sample standard deviation.
#   awk -v name="CartPole-v1, PPO" -v marks="20000 40000" -f learning.awk FILE FILE…
BEGIN { FS = "[:,}]"; n = split(marks, mark, " ") }
FNR == 1 { seeds++ }
/"charts\/episodic_return"/ {
    match($0, /"step":[0-9]+/)
    step = substr($0, RSTART + 7, RLENGTH - 7) + 0
    match($0, /"value":[-+0-9.eE]+/)
    value = substr($0, RSTART + 8, RLENGTH - 8) + 0
    # The last report at or before the moment.
    for (i = 1; i <= n; i++) if (step <= mark[i]) at[i, seeds] = value
}
END {
    printf "| %s |", name
    for (i = 1; i <= n; i++) {
        sum = squares = 0
        for (s = 1; s <= seeds; s++) sum += at[i, s]
        mean = sum / seeds
        for (s = 1; s <= seeds; s++) squares += (at[i, s] - mean) ^ 2
        spread = seeds > 1 ? sqrt(squares / (seeds - 1)) : 0
        printf((mean < 10 && mean > -10) ? " %.2f ± %.2f |" : " %.0f ± %.0f |", mean, spread)
    }
    printf "\n"
}
