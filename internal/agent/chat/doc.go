// Package chat asks language models: one request, a streamed answer, put
// together and checked. Two protocols are spoken, OpenAI's Chat Completions and
// Anthropic's Messages; callers see one kind of message, answer and error.
//
// What a model sends is believed as little as what a sandbox sends: every
// length has a limit, an answer that ends in the middle is an error and never a
// shorter answer, and whatever the provider writes in an error is cut to a line.
//
// Tools, transcripts and what to do next belong to package agent.
package chat
