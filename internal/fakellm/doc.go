// Package fakellm is a language model that says what a script says: a real
// HTTP server that speaks OpenAI's Chat Completions and Responses, Anthropic's
// Messages and Google's generateContent, streaming and not, with usage, for tests and measurements of programs
// that talk to models.
//
// What is said next depends only on the conversation that a request carries, so
// a request that is sent twice is answered twice in the same way.
package fakellm
