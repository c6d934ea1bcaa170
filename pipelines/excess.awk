# Reads the metrics of evaluations in the order of points market=101,seed=1; market=101,seed=2; ... and writes, for each of
# three training seeds, the mean excess return over cash and over random actions with its 95 % interval.
function report(name,    seed, i, n, sum, mean, squares, half) {
    for (seed = 0; seed < 3; seed++) {
        n = sum = squares = 0
        for (i = seed; i < count[name]; i += 3) { sum += value[name, i]; n++ }
        mean = sum / n
        for (i = seed; i < count[name]; i += 3) squares += (value[name, i] - mean) ^ 2
        half = t975 * sqrt(squares / (n - 1) / n)
        printf "seed %d  %-18s %+.4f  [%+.4f, %+.4f]  over %d markets\n", seed + 1, name, mean, mean - half, mean + half, n
    }
}
BEGIN { FS = "[:,}]"; t975 = 2.093 } # 19 degrees of freedom
/"excess_over\/(cash|random|short_straddle|underlying)"/ {
    match($0, /excess_over\/[a-z_]+/)
    name = substr($0, RSTART, RLENGTH)
    match($0, /"value":[-+0-9.eE]+/)
    value[name, count[name]++ + 0] = substr($0, RSTART + 8, RLENGTH - 8) + 0
}
END { report("excess_over/cash"); report("excess_over/random"); report("excess_over/short_straddle"); report("excess_over/underlying") }
