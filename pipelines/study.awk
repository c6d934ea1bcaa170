# Reads `agent AGENT`, followed by the metrics of its evaluations, one training seed after the other, for each agent. Writes the mean utility of each agent
# over the seeds, and the difference of the first agent from the others with its 95 % intervals: over seeds (paired, Student's t, four degrees of freedom), and those
# of `evaluate/compare`, whose metrics follow `versus AGENT`: over worlds, and over worlds and seeds.
function field(line,    text) {
    match(line, /"value":[-+0-9.eE]+/)
    return substr(line, RSTART + 8, RLENGTH - 8) + 0
}
BEGIN { t975 = 2.776 }
/^versus / { agent = $2; of_comparison = 1; next }
of_comparison {
    if (match($0, /"name":"difference\/utility[a-z_]*"/)) versus[agent, substr($0, RSTART + 26, RLENGTH - 27)] = field($0)
    next
}
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
        printf "%s less %s: %+.4f [%+.4f, %+.4f] over seeds", first, agent, sum / n, sum / n - half, sum / n + half
        printf ", [%+.4f, %+.4f] over worlds", versus[agent, "_over_worlds_low"], versus[agent, "_over_worlds_high"]
        printf ", [%+.4f, %+.4f] over both\n", versus[agent, "_low"], versus[agent, "_high"]
    }
}
