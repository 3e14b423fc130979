package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// refusal is a text of the API server, and what it means.
type refusal struct {
	words string // part of the text
	kind  error
	hint  string
}

// refusals are tried in this order: the last one is part of many texts.
var refusals = []refusal{
	{"exceeded quota", sandbox.ErrUnavailable, "remove sandboxes (`atoll sandbox prune`), or raise the ResourceQuota of the namespace"},
	{"must specify", sandbox.ErrUnsupported, "the namespace's ResourceQuota wants limits: set docker.memory and docker.cpus"},
	{"maximum memory usage", sandbox.ErrUnsupported, "lower docker.memory, or raise the LimitRange of the namespace"},
	{"maximum cpu usage", sandbox.ErrUnsupported, "lower docker.cpus, or raise the LimitRange of the namespace"},
	{"violates PodSecurity", sandbox.ErrUnsupported, "the namespace's Pod Security level refuses the pod: use restricted, which it is made for"},
	{"ValidatingAdmissionPolicy", sandbox.ErrUnsupported, "a policy of the cluster refuses the pod: change the setting that it names, or the policy"},
	{"admission webhook", sandbox.ErrUnsupported, "a webhook of the cluster refuses the pod: change the setting that it names, or the webhook"},
	{"RuntimeClass", sandbox.ErrUnsupported, "make that RuntimeClass, or change kubernetes.runtimeClass"},
	{"PriorityClass", sandbox.ErrUnsupported, "make that PriorityClass, or change kubernetes.priorityClass"},
	{"service account", sandbox.ErrUnsupported, "make that ServiceAccount in the namespace, or change kubernetes.serviceAccount"},
	{"serviceaccount", sandbox.ErrUnsupported, "make that ServiceAccount in the namespace, or change kubernetes.serviceAccount"},
	{"because it is being terminated", sandbox.ErrUnavailable, "wait until the namespace is gone, and make it again"},
}

// explain adds to an error of the API server its kind and what to do about it.
func explain(err error) error {
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err), apierrors.IsGone(err):
		return err
	case apierrors.IsNotFound(err):
		return notFound(err)
	case apierrors.IsUnauthorized(err):
		return errhint.With(fmt.Errorf("%w: %w", err, sandbox.ErrUnavailable), "the cluster does not know these credentials: log in again, or change kubernetes.context")
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return refused(err)
	case isBusy(err):
		return errhint.With(fmt.Errorf("%w: %w", err, sandbox.ErrUnavailable), "the API server is busy: try again")
	}
	if isAway(err) {
		return errhint.With(fmt.Errorf("the API server does not answer: %w: %w", err, sandbox.ErrUnavailable), "check the cluster with `kubectl get --raw /readyz`, and kubernetes.context")
	}
	return err
}

// isBusy reports whether the API server answers that it has no time.
func isBusy(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err)
}

// isAway reports whether the API server did not answer.
func isAway(err error) bool {
	_, ok := errors.AsType[net.Error](err)
	return ok || errors.Is(err, context.DeadlineExceeded)
}

// isPassing reports whether a question to the API server may be answered when it is repeated.
func isPassing(err error) bool { return isBusy(err) || isAway(err) }

// notFound tells a missing namespace from a missing object.
func notFound(err error) error {
	if strings.Contains(err.Error(), "namespaces ") {
		return errhint.With(fmt.Errorf("%w: %w", err, sandbox.ErrUnavailable), "make the namespace first: kubectl apply -k deploy/kubernetes, or change kubernetes.namespace")
	}
	return fmt.Errorf("%w: %w", sandbox.ErrNotFound, err)
}

// refused explains an object that the API server does not take.
func refused(err error) error {
	text := err.Error()
	for _, known := range refusals {
		if strings.Contains(text, known.words) {
			return errhint.With(fmt.Errorf("%w: %w", err, known.kind), known.hint)
		}
	}
	if verb, ok := missingVerb(text); ok {
		return errhint.With(fmt.Errorf("%w: %w", err, sandbox.ErrUnavailable), "allow it with a Role of the namespace: verb "+verb+" (deploy/kubernetes has the whole Role)")
	}
	return fmt.Errorf("%w: %w", err, sandbox.ErrUnsupported)
}

// missingVerb returns the verb and the resource of a text such as `pods is forbidden: User
// "x" cannot create resource "pods" in API group "" in the namespace "y"`.
func missingVerb(text string) (string, bool) {
	_, after, ok := strings.Cut(text, " cannot ")
	if !ok {
		return "", false
	}
	verb, after, ok := strings.Cut(after, ` resource "`)
	if !ok {
		return "", false
	}
	resource, _, ok := strings.Cut(after, `"`)
	return verb + " on " + resource, ok
}

// imageMissing is the error of an image that nodes cannot get.
type imageMissing struct{ ref, reason string }

func (e imageMissing) Error() string { return "image " + e.ref + ": " + e.reason }

// Is makes it an ErrNoImage.
func (e imageMissing) Is(target error) bool { return target == sandbox.ErrNoImage }
