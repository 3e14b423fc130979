package run

// Public is what a connection to an external agent must pass.
var Public = public
