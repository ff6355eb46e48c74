package nodeclass

import (
	"encoding/json"
	"strings"
	"time"
)

// shape is what the value of a setting of the kubelet looks like.
type shape string

const (
	aSwitch   shape = "true or false"
	aNumber   shape = "a whole number of up to 2147483647"
	aLong     shape = "a whole number"
	aFraction shape = "a number"
	aText     shape = "a text"
	aDuration shape = "a duration, such as 1m30s"
	aList     shape = "a list"
	someTexts shape = "a list of texts"
	textMap   shape = "texts by name"
	switches  shape = "true or false by name"
	anObject  shape = "an object"
)

// check says what is wrong with a value; empty if nothing is.
func (s shape) check(raw []byte) string {
	var err error
	switch s {
	case aSwitch:
		err = json.Unmarshal(raw, new(bool))
	case aNumber:
		err = json.Unmarshal(raw, new(int32))
	case aLong:
		err = json.Unmarshal(raw, new(int64))
	case aFraction:
		err = json.Unmarshal(raw, new(float64))
	case aText:
		err = json.Unmarshal(raw, new(string))
	case aDuration:
		var text string
		if err = json.Unmarshal(raw, &text); err == nil {
			_, err = time.ParseDuration(text)
		}
	case aList:
		err = json.Unmarshal(raw, new([]json.RawMessage))
	case someTexts:
		err = json.Unmarshal(raw, new([]string))
	case textMap:
		err = json.Unmarshal(raw, new(map[string]string))
	case switches:
		err = json.Unmarshal(raw, new(map[string]bool))
	case anObject:
		err = json.Unmarshal(raw, new(map[string]json.RawMessage))
	}
	if err != nil {
		return "must be " + string(s)
	}
	return ""
}

// kubeletFields are the settings of kubelet.config.k8s.io/v1beta1 KubeletConfiguration, as of Kubernetes 1.36.
func kubeletFields() map[string]shape {
	out := map[string]shape{}
	for s, names := range map[shape]string{
		aSwitch: `cgroupsPerQOS cpuCFSQuota enableContentionProfiling enableControllerAttachDetach
			enableDebugFlagsHandler enableDebuggingHandlers enableProfilingHandler enableServer
			enableSystemLogHandler enableSystemLogQuery failCgroupV1 failSwapOn kernelMemcgNotification
			localStorageCapacityIsolation makeIPTablesUtilChains mergeDefaultEvictionSettings protectKernelDefaults
			registerNode rotateCertificates runOnce seccompDefault serializeImagePulls serverTLSBootstrap
			singleProcessOOMKill`,
		aNumber: `containerLogMaxFiles containerLogMaxWorkers eventBurst eventRecordQPS evictionMaxPodGracePeriod
			healthzPort imageGCHighThresholdPercent imageGCLowThresholdPercent iptablesDropBit iptablesMasqueradeBit
			kubeAPIBurst kubeAPIQPS maxParallelImagePulls maxPods nodeLeaseDurationSeconds nodeStatusMaxImages
			oomScoreAdj podsPerCore port readOnlyPort registryBurst registryPullQPS`,
		aLong:     `maxOpenFiles podPidsLimit`,
		aFraction: `memoryThrottlingFactor`,
		aText: `address cgroupDriver cgroupRoot clusterDomain configMapAndSecretChangeDetectionStrategy
			containerLogMaxSize containerRuntimeEndpoint contentType cpuManagerPolicy hairpinMode healthzBindAddress
			imagePullCredentialsVerificationPolicy imageServiceEndpoint kubeReservedCgroup kubeletCgroups
			memoryManagerPolicy memoryReservationPolicy podCIDR podLogsDir providerID reservedSystemCPUs resolvConf
			showHiddenMetricsForVersion staticPodPath staticPodURL systemCgroups systemReservedCgroup tlsCertFile
			tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy topologyManagerScope volumePluginDir`,
		aDuration: `containerLogMonitorInterval cpuCFSQuotaPeriod cpuManagerReconcilePeriod
			evictionPressureTransitionPeriod fileCheckFrequency httpCheckFrequency imageMaximumGCAge
			imageMinimumGCAge nodeStatusReportFrequency nodeStatusUpdateFrequency runtimeRequestTimeout
			shutdownGracePeriod shutdownGracePeriodCriticalPods streamingConnectionIdleTimeout syncFrequency
			volumeStatsAggPeriod`,
		aList: `reservedMemory shutdownGracePeriodByPodPriority tlsCurvePreferences`,
		someTexts: `allowedUnsafeSysctls clusterDNS enforceNodeAllocatable preloadedImagesVerificationAllowlist
			tlsCipherSuites`,
		textMap: `cpuManagerPolicyOptions evictionHard evictionMinimumReclaim evictionSoft evictionSoftGracePeriod
			kubeReserved qosReserved systemReserved topologyManagerPolicyOptions`,
		switches: `featureGates`,
		anObject: `authentication authorization crashLoopBackOff logging memorySwap staticPodURLHeader tracing
			userNamespaces`,
	} {
		for _, name := range strings.Fields(names) {
			out[name] = s
		}
	}
	return out
}
