package rootfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/outbound"
)

// pullStall is how long a registry may be silent before it is given up.
const pullStall = time.Minute

// Pull fetches an image from its registry, with the credentials that container
// tools keep for this user. Everything fetched is compared with its digest.
func (s *Store) Pull(ctx context.Context, ref string, o AddOptions) (*Image, error) {
	if IsHost(ref) {
		return nil, errhint.With(fmt.Errorf("image %q: stands for the host's own programs, which need no pulling", ref), "leave `image` unset to use them")
	}
	parsed, err := s.parse(ref)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alive := &stallTimer{timer: time.AfterFunc(pullStall, func() { cancel(fmt.Errorf("no answer for %v", pullStall)) })}
	defer alive.timer.Stop()
	connections, err := s.newTransport()
	if err != nil {
		return nil, err
	}
	defer connections.CloseIdleConnections()
	c, err := s.fetch(ctx, parsed, connections, alive)
	if err == nil {
		var image *Image
		if image, err = s.add(ctx, c, []string{ref}, o.Report); err == nil {
			return image, nil
		}
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, pullError(ref, parsed, err)
}

func (s *Store) parse(ref string) (name.Reference, error) {
	if _, err := canonical(ref); err != nil {
		return nil, err
	}
	parsed, err := name.ParseReference(ref)
	if err == nil && slices.Contains(s.Insecure, parsed.Context().RegistryStr()) {
		return name.ParseReference(ref, name.Insecure)
	}
	return parsed, err
}

// fetch asks for the manifest and configuration. Layers are read later, as they
// are unpacked.
func (s *Store) fetch(ctx context.Context, ref name.Reference, connections http.RoundTripper, alive *stallTimer) (*candidate, error) {
	desc, err := remote.Get(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}),
		remote.WithTransport(s.tlsTransport(connections, ref.Context().RegistryStr())))
	if err != nil {
		return nil, err
	}
	alive.reset()
	if err := checkPlatforms(desc); err != nil {
		return nil, err
	}
	image, err := desc.Image()
	if err != nil {
		return nil, err
	}
	return s.fromRegistry(ctx, image, ref, alive)
}

// checkPlatforms refuses an index that has nothing for this machine, and says
// what it has.
func checkPlatforms(desc *remote.Descriptor) error {
	if !desc.MediaType.IsIndex() {
		return nil
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(desc.Manifest))
	if err == nil && len(forThisMachine(index.Manifests)) == 0 {
		return noneFits(index.Manifests)
	}
	return err
}

func (s *Store) fromRegistry(ctx context.Context, image v1.Image, ref name.Reference, alive *stallTimer) (*candidate, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	alive.reset()
	if err := s.checkManifest(manifest); err != nil {
		return nil, err
	}
	raw, err := image.RawConfigFile()
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	c := &candidate{id: digestOf(raw), digest: digest.String(), source: ref.Name()}
	if c.config, err = v1.ParseConfigFile(bytes.NewReader(raw)); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	for _, l := range manifest.Layers {
		c.layers = append(c.layers, blob{size: l.Size, open: func(context.Context) (io.ReadCloser, error) {
			return openRemote(image, l.Digest, alive)
		}})
	}
	return c, ctx.Err()
}

func openRemote(image v1.Image, digest v1.Hash, alive *stallTimer) (io.ReadCloser, error) {
	layer, err := image.LayerByDigest(digest)
	if err != nil {
		return nil, err
	}
	body, err := layer.Compressed() // compares size and digest as it is read
	if err != nil {
		return nil, err
	}
	return &progressReader{body, alive}, nil
}

// stallTimer ends a pull that nothing arrives for any more.
type stallTimer struct{ timer *time.Timer }

func (w *stallTimer) reset() { w.timer.Reset(pullStall) }

type progressReader struct {
	io.ReadCloser
	alive *stallTimer
}

func (w *progressReader) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n > 0 {
		w.alive.reset()
	}
	return n, err
}

// newTransport makes connections of a pull's own, through the proxy that the
// environment names, each step with a limit.
func (s *Store) newTransport() (*http.Transport, error) {
	open := s.Outbound
	if open == nil {
		open = func() (*outbound.Host, error) { return outbound.NewHost(outbound.Options{}) }
	}
	host, err := open()
	if err != nil {
		return nil, err
	}
	t := host.Transport()
	t.MaxIdleConnsPerHost, t.ResponseHeaderTimeout, t.IdleConnTimeout = parallelLayers, pullStall, pullStall
	return t, nil
}

// tlsOnly refuses to speak without TLS, except to a registry on loopback and
// to registries that were named: the library would, to any private address. A
// registry elsewhere cannot send us to loopback either. Answers that are kept in
// memory have a limit.
type tlsOnly struct {
	transport http.RoundTripper
	local     bool     // the registry is on loopback
	plain     []string // registries that were named
	document  int64
}

func (s *Store) tlsTransport(connections http.RoundTripper, registry string) *tlsOnly {
	local := isLoopback((&url.URL{Host: registry}).Hostname())
	return &tlsOnly{transport: connections, local: local, plain: s.Insecure, document: s.Limits.Document}
}

var errPlain = errors.New("without TLS only to a registry on loopback")

func (c *tlsOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	here := c.local && isLoopback(r.URL.Hostname())
	if r.URL.Scheme != "https" && !here && !slices.Contains(c.plain, r.URL.Host) {
		return nil, fmt.Errorf("%s: %w", r.URL.Host, errPlain)
	}
	answer, err := c.transport.RoundTrip(r)
	if err == nil && strings.Contains(r.URL.Path, "/manifests/") {
		limited := &meter{Reader: answer.Body, ctx: r.Context(), stop: Limits{Size: c.document}.tooLong}
		answer.Body = struct {
			io.Reader
			io.Closer
		}{limited, answer.Body}
	}
	return answer, err
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// pullError says what a person can do about it.
func pullError(ref string, parsed name.Reference, err error) error {
	err = fmt.Errorf("pull %s: %w", ref, err)
	registry := parsed.Context().RegistryStr()
	answer, ok := errors.AsType[*transport.Error](err)
	switch {
	case errhint.Of(err) != "":
		return err
	case ok && answer.StatusCode == http.StatusNotFound:
		return errhint.With(err, registry+" has no such image: check the name and the tag")
	case ok && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden):
		return errhint.With(err, "log in with `docker login "+registry+"` or `podman login "+registry+"`, or check the name")
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return errhint.With(err, "let this machine reach "+registry+", or import a file that `docker save` wrote elsewhere")
	}
	return err
}
