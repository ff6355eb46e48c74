package main

import (
	"fmt"

	"github.com/tenon-sh/tenon/internal/provisioner"
	"github.com/tenon-sh/tenon/internal/translate"
)

// addOlderKinds adds what keeps Provisioners and AWSNodeTemplates. Clusters without them are fine.
func addOlderKinds(on ground) error {
	if on.o.disableOlderKinds {
		on.mgr.GetLogger().Info("Provisioners and AWSNodeTemplates are left alone (--disable-older-kinds)")
		return nil
	}
	writes, err := writer(on.mgr, on.leads)
	if err != nil {
		return err
	}
	target := translate.Target{Cloud: translate.KWOK}
	if on.o.cloudProvider == cloudAWS {
		target = translate.Target{Cloud: translate.AWS, Cluster: on.o.aws.clusterName, InstanceProfile: on.o.aws.defaultProfile}
	}
	unknown, err := provisioner.Setup(on.mgr, provisioner.Options{Client: writes, Events: on.events, Target: target})
	if err != nil {
		return fmt.Errorf("adding the controller of older kinds: %w", err)
	}
	for _, kind := range unknown {
		on.mgr.GetLogger().Info("the cluster does not serve a kind of an older generation; install its CustomResourceDefinition and restart to use it", "kind", kind)
	}
	return nil
}
