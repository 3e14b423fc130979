package tracing

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/version"
)

// The limits of what waits to be sent.
const (
	// QueueSize is how many spans wait; more are dropped.
	QueueSize  = 2048
	batchSize  = 512
	sendEvery  = time.Second
	sendPeriod = 10 * time.Second // for one batch
	logEvery   = time.Minute      // how often a failure to send is logged
)

// Options say where spans go.
type Options struct {
	Endpoint string // URL of the collector's traces, /v1/traces by custom
	Client   *http.Client
	Logger   *slog.Logger
	Failed   func() // counts a batch that was not sent; may be nil
}

// EndpointOf returns where the standard variables of OpenTelemetry say that traces go, or
// else what is configured; "" if nowhere.
func EndpointOf(getenv func(string) string, configured string) string {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return ""
	}
	if own := getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); own != "" {
		return own
	}
	if all := getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); all != "" {
		return strings.TrimSuffix(all, "/") + "/v1/traces"
	}
	return configured
}

// Open returns a tracer that sends to a collector by OTLP over HTTP. Headers, the
// sampler and the resource are those of the standard variables OTEL_EXPORTER_OTLP_HEADERS,
// OTEL_TRACES_SAMPLER, OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
func Open(ctx context.Context, o Options) (*Tracer, error) {
	if u, err := url.Parse(o.Endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errhint.With(fmt.Errorf("%.200q is no address of a collector of traces", o.Endpoint), "write http://HOST:4318/v1/traces; traces are sent by OTLP over HTTP")
	}
	send, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(o.Endpoint), otlptracehttp.WithHTTPClient(o.Client), otlptracehttp.WithTimeout(sendPeriod),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: time.Second, MaxInterval: 5 * time.Second, MaxElapsedTime: sendPeriod}))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "atoll"), attribute.String("service.version", version.Current().Version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	otel.SetErrorHandler(newErrorLog(&o))
	provider := sdk.NewTracerProvider(sdk.WithIDGenerator(ids{}), sdk.WithResource(about), sdk.WithRawSpanLimits(spanLimits()),
		sdk.WithBatcher(send, sdk.WithMaxQueueSize(QueueSize), sdk.WithMaxExportBatchSize(batchSize), sdk.WithBatchTimeout(sendEvery), sdk.WithExportTimeout(sendPeriod)))
	return &Tracer{provider: provider, tracer: provider.Tracer("github.com/atoll-run/atoll"), active: map[string]trace.SpanContext{}}, nil
}

func spanLimits() sdk.SpanLimits {
	l := sdk.NewSpanLimits()
	l.AttributeValueLengthLimit, l.AttributeCountLimit = 4*maxText, 64
	return l
}

// newErrorLog returns what logs that spans could not be sent, now and then.
func newErrorLog(o *Options) otel.ErrorHandlerFunc {
	log := cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	var mu sync.Mutex
	var last time.Time
	return func(err error) {
		if o.Failed != nil {
			o.Failed()
		}
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) > logEvery {
			last = time.Now()
			log.Warn("traces were not sent; runs go on", "error", err)
		}
	}
}
