-- broken "a\x1b[31mb\x0ac": nothing that a terminal would obey
error("a\27[31mb\nc", 0)
