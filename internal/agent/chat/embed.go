package chat

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Limits of an answer with vectors.
const (
	embedPatience  = 60 * time.Second
	maxVectorBytes = 256 << 10
)

// Embed asks a model for vectors of texts, whatever protocol the client speaks
// otherwise: only OpenAI's has them. Errors are *Error, or the context's.
func (c *Client) Embed(ctx context.Context, model string, texts []string) ([][]float32, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, embedPatience, errSilence)
	defer cancel()
	response, err := c.sendTexts(ctx, model, texts)
	if err != nil {
		return nil, c.failure(ctx, CodeUnreachable, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, refusal(response)
	}
	most := int64(len(texts)+1) * maxVectorBytes
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if err != nil {
		return nil, c.failure(ctx, CodeCut, err)
	}
	if int64(len(body)) > most {
		return nil, &Error{Code: CodeTooLarge, Message: fmt.Sprintf("the vectors have more than %d bytes", most)}
	}
	return vectorsOf(body, len(texts))
}

func (c *Client) sendTexts(ctx context.Context, model string, texts []string) (*http.Response, error) {
	body, err := json.Marshal(struct {
		Model    string   `json:"model"`
		Input    []string `json:"input"`
		Encoding string   `json:"encoding_format"`
	}{model, texts, "float"})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(c.BaseURL, "/")+"/embeddings", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	for name, value := range (completions{}).headers(c.Key) {
		request.Header.Set(name, value)
	}
	for name, value := range c.Headers {
		request.Header.Set(name, value)
	}
	return c.Client.Do(request)
}

// vectorsOf reads the vectors of so many texts, in their order.
func vectorsOf(body []byte, texts int) ([][]float32, error) {
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, &Error{Code: CodeGarbage, Message: "the answer holds no vectors: " + oneLine(err.Error()), Err: err}
	}
	vectors := make([][]float32, texts)
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= texts || vectors[d.Index] != nil {
			return nil, &Error{Code: CodeGarbage, Message: fmt.Sprintf("a vector came for text %d of %d", d.Index, texts)}
		}
		vectors[d.Index] = d.Embedding
	}
	return vectors, nil
}
