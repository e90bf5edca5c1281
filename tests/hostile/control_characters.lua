-- broken "a\x1b[31mb\nc": nothing that a terminal would obey
error("a\27[31mb\nc", 0)
