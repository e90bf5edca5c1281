-- budget: every allocation near the cap collects the whole heap, which is charged
local keep, n = {}, 0
while true do n = n + 1; keep[n % 100000] = { n, n, n } end
