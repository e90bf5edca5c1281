-- broken "keys of tables are names": only plain values go into statements
row { id = "x", [{}] = 1 }
