-- broken "io is not available"
io.open("/etc/passwd")
