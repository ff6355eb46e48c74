variable "cluster_name" {
  type        = string
  description = "Name of the EKS cluster, which must be there already"
  validation {
    condition     = can(regex("^[0-9A-Za-z][0-9A-Za-z_-]{0,45}$", var.cluster_name))
    error_message = "cluster_name takes at most 46 letters, digits, dashes and underscores. IAM takes no longer names of roles."
  }
}

variable "identity" {
  type        = string
  description = "How the controller's pods get their role. PodIdentity needs the add-on eks-pod-identity-agent in the cluster, IRSA an OpenID Connect provider in IAM for the cluster, and oidc_issuer."
  default     = "PodIdentity"
  validation {
    condition     = contains(["PodIdentity", "IRSA"], var.identity)
    error_message = "identity is PodIdentity or IRSA."
  }
}

variable "oidc_issuer" {
  type        = string
  description = "With IRSA: the cluster's issuer without https://, such as oidc.eks.us-west-2.amazonaws.com/id/0123456789ABCDEF"
  default     = ""
  validation {
    condition     = can(regex("^([^:/]+/.+)?$", var.oidc_issuer))
    error_message = "oidc_issuer is the issuer without https://."
  }
}

variable "namespace" {
  type        = string
  description = "Namespace of the controller"
  default     = "kube-system"
}

variable "service_account" {
  type        = string
  description = "Service account of the controller"
  default     = "karpenter"
}

variable "access_entry" {
  type        = string
  description = "The access entry by which nodes may join. None is for a cluster whose authentication mode is CONFIG_MAP, where the node role goes into the ConfigMap aws-auth, and for a cluster that has the entry already."
  default     = "EC2_LINUX"
  validation {
    condition     = contains(["EC2_LINUX", "EC2_WINDOWS", "None"], var.access_entry)
    error_message = "access_entry is EC2_LINUX, EC2_WINDOWS or None."
  }
}

variable "create_spot_service_linked_role" {
  type        = bool
  description = "true in an account that has never used spot instances. An account has this role once; a second one is refused."
  default     = false
}
