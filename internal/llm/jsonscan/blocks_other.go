//go:build !amd64

package jsonscan

// canPass is false where nobody has written pass.
const canPass = false

func pass(*byte, int, *stop) int { return 0 }
