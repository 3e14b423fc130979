package config

// Size is an amount of memory as the file wrote it: a string such as "512m" or
// a number of bytes. The written form is kept because it is what is hashed.
type Size struct {
	Text   string // "512m", or the number's digits
	Number bool   // written as a JSON number
}

// Ulimit is one entry of docker.ulimits: a string, a number, or soft and hard.
type Ulimit struct {
	Text       string // set when written as a string or number
	Number     bool
	Soft, Hard *int64 // set when written as an object
}
