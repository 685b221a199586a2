package authority

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/unit/link"
)

// A configMap is the ConfigMap as it was read; without an object if there is none. It is nil if it
// could not be read.
type configMap struct{ object *corev1.ConfigMap }

func (k *Keeper) readConfigMap(ctx context.Context) (*configMap, error) {
	object, err := k.Client.ConfigMaps(k.Name.Namespace).Get(ctx, k.Name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &configMap{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ConfigMap %s: %w", k.Name, err)
	}
	return &configMap{object}, nil
}

// has reports whether edges can read a certificate there.
func (c *configMap) has(certificate *x509.Certificate) bool {
	if c == nil || c.object == nil {
		return false
	}
	list, err := link.ParseCertificates([]byte(c.object.Data[CertificateKey]))
	return err == nil && slices.ContainsFunc(list, certificate.Equal)
}

// publish writes the certificates into the ConfigMap, unless it has them.
func (k *Keeper) publish(ctx context.Context, shown *configMap, bundle []byte) error {
	maps := k.Client.ConfigMaps(k.Name.Namespace)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.Name.Namespace, Name: k.Name.Name}}
	if shown.object != nil {
		object = shown.object.DeepCopy()
	}
	if object.Data[CertificateKey] == string(bundle) {
		return nil
	}
	if object.Data == nil {
		object.Data = map[string]string{}
	}
	object.Data[CertificateKey] = string(bundle)
	var err error
	if shown.object == nil {
		_, err = maps.Create(ctx, object, metav1.CreateOptions{})
	} else {
		_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write the ConfigMap %s: %w", k.Name, err)
	}
	k.Log.Info("the certificates of the authority of edges were published", "configmap", k.Name)
	return nil
}
