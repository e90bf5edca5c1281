-- broken "no name 'rejct'": a misspelt verb is not silence
rejct { id = "x" }
