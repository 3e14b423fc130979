// Package litellmtest is a server that behaves like the LiteLLM proxy as far as
// Atoll relies on it: master and virtual keys with budgets, model info with
// prices, models in every dialect of package scripted, and spend logs that are
// written later than the answers, in pages, in the new form and the old. It is
// for tests and measurements.
package litellmtest
