package browserkeys

// Risk is a key that takes a browser's protection away, and what follows.
type Risk struct{ Key, Means string }

// Risks returns the keys whose use is warned of.
func Risks() []Risk {
	return []Risk{
		{"dangerouslyNoSandbox", "Chromium has no sandbox of its own: a page that takes over its renderer has all of the browser, and Atoll's sandbox is the one wall"},
		{"dangerouslyIgnoreCertificates", "pages may have certificates that nobody trusts: whoever is on the way can read and change them"},
	}
}
