package config

// runtimeImage is the name that other documents have for the image that sandboxes
// use by default.
const runtimeImage = "cogni-sandbox-runtime"

// imageNamed is the image that a name stands for.
func imageNamed(name string) string {
	if name == runtimeImage || name == runtimeImage+":latest" {
		return builtin().Docker.Image
	}
	return name
}
