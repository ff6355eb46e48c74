package catalog

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// device is an accelerator: how many, whose, and how much memory each has.
type device struct {
	count              int
	manufacturer, name string
	memoryMiB          int
}

// gpu reads "NVIDIA Tesla V100" as EC2 tells it: NVIDIA, V100. The source doesn't know Gaudi; a dl1 has eight.
func (r *row) gpu() (device, bool) {
	if r.family == "dl1" {
		return device{count: 8, manufacturer: "Habana", name: "Gaudi HL-205", memoryMiB: 32 * 1024}, true
	}
	manufacturer, name, _ := strings.Cut(r.gpuModel, " ")
	if r.gpus == 0 || (manufacturer != "NVIDIA" && manufacturer != "AMD") {
		return device{}, false
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "Tesla "), " Tensor Core")
	if name == "T4G" {
		name = "T4g"
	}
	return device{count: r.gpus, manufacturer: manufacturer, name: name, memoryMiB: r.gpuMemoryMiB / r.gpus}, true
}

func (r *row) gpuInfo() *ec2types.GpuInfo {
	d, ok := r.gpu()
	if !ok {
		return nil
	}
	return &ec2types.GpuInfo{
		Gpus: []ec2types.GpuDeviceInfo{{
			Count:        aws.Int32(int32(d.count)),
			Manufacturer: aws.String(d.manufacturer),
			Name:         aws.String(d.name),
			MemoryInfo:   &ec2types.GpuDeviceMemoryInfo{SizeInMiB: aws.Int32(int32(d.memoryMiB))},
		}},
		TotalGpuMemoryInMiB: aws.Int32(int32(d.count * d.memoryMiB)),
	}
}

// neuron is an AWS accelerator with its cores.
type neuron struct {
	device
	cores, version int
}

// neurons: what each kind is made of follows from the family.
func (r *row) neurons() (neuron, bool) {
	n := neuron{device: device{count: r.gpus, manufacturer: "AWS"}}
	switch r.family {
	case "inf1":
		n.name, n.memoryMiB, n.cores, n.version = "Inferentia", 8*1024, 4, 1
	case "inf2":
		n.name, n.memoryMiB, n.cores, n.version = "Inferentia2", 32*1024, 2, 2
	case "trn1", "trn1n":
		n.name, n.memoryMiB, n.cores, n.version = "Trainium", 32*1024, 2, 2
	case "trn2":
		n.name, n.memoryMiB, n.cores, n.version = "Trainium2", 96*1024, 8, 3
	default:
		return neuron{}, false
	}
	return n, true
}

func (r *row) neuronInfo() *ec2types.NeuronInfo {
	n, ok := r.neurons()
	if !ok {
		return nil
	}
	return &ec2types.NeuronInfo{
		NeuronDevices: []ec2types.NeuronDeviceInfo{{
			Count: aws.Int32(int32(n.count)),
			Name:  aws.String(n.name),
			CoreInfo: &ec2types.NeuronDeviceCoreInfo{Count: aws.Int32(int32(n.cores)),
				Version: aws.Int32(int32(n.version))},
			MemoryInfo: &ec2types.NeuronDeviceMemoryInfo{SizeInMiB: aws.Int32(int32(n.memoryMiB))},
		}},
		TotalNeuronDeviceMemoryInMiB: aws.Int32(int32(n.count * n.memoryMiB)),
	}
}

// inferenceInfo: EC2 still tells Inferentia's first generation in this older form, too.
func (r *row) inferenceInfo() *ec2types.InferenceAcceleratorInfo {
	n, ok := r.neurons()
	if !ok || r.category != "inf" {
		return nil
	}
	return &ec2types.InferenceAcceleratorInfo{
		Accelerators: []ec2types.InferenceDeviceInfo{{
			Count:        aws.Int32(int32(n.count)),
			Manufacturer: aws.String(n.manufacturer),
			Name:         aws.String(n.name),
			MemoryInfo:   &ec2types.InferenceDeviceMemoryInfo{SizeInMiB: aws.Int32(int32(n.memoryMiB))},
		}},
		TotalInferenceMemoryInMiB: aws.Int32(int32(n.count * n.memoryMiB)),
	}
}

// mediaInfo: a VT1 has one U30 card for twelve vCPUs.
func (r *row) mediaInfo() *ec2types.MediaAcceleratorInfo {
	if r.family != "vt1" {
		return nil
	}
	count, memoryMiB := r.vcpu/12, 24*1024
	return &ec2types.MediaAcceleratorInfo{
		Accelerators: []ec2types.MediaDeviceInfo{{
			Count:        aws.Int32(int32(count)),
			Manufacturer: aws.String("Xilinx"),
			Name:         aws.String("U30"),
			MemoryInfo:   &ec2types.MediaDeviceMemoryInfo{SizeInMiB: aws.Int32(int32(memoryMiB))},
		}},
		TotalMediaMemoryInMiB: aws.Int32(int32(count * memoryMiB)),
	}
}

func (r *row) fpgaInfo() *ec2types.FpgaInfo {
	if r.fpgas == 0 {
		return nil
	}
	d := device{count: r.fpgas, manufacturer: "Xilinx", name: "Virtex UltraScale (VU9P)", memoryMiB: 64 * 1024}
	if r.family == "f2" {
		d = device{count: r.fpgas, manufacturer: "AMD", name: "Virtex UltraScale+ (VU47P)", memoryMiB: 80 * 1024}
	}
	return &ec2types.FpgaInfo{
		Fpgas: []ec2types.FpgaDeviceInfo{{
			Count:        aws.Int32(int32(d.count)),
			Manufacturer: aws.String(d.manufacturer),
			Name:         aws.String(d.name),
			MemoryInfo:   &ec2types.FpgaDeviceMemoryInfo{SizeInMiB: aws.Int32(int32(d.memoryMiB))},
		}},
		TotalFpgaMemoryInMiB: aws.Int32(int32(d.count * d.memoryMiB)),
	}
}
