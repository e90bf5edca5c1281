-- broken "string is not available": patterns run no instruction
string.find("aaaaaaaaaaaaaaaaaaaaaaaa", ".-.-.-.-.-.-b")
