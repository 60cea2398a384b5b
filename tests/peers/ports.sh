# free_port: prints a loopback port that nobody listens on. Sourced.
free_port() {
    local port
    while port=$((20000 + RANDOM % 12000)); do
        # A refused connection is what tells us that the port is free.
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
}
