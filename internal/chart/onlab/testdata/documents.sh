#!/usr/bin/env bash
# What the founding documents tell a reader to type, in the order of each document. Every command is as it is printed, but for the
# address of the chart: $CHART stands for karpenter/karpenter and oci://public.ecr.aws/karpenter/karpenter. The tests run it:
#
#   documents.sh 000    with CHART, CRD_CHART, MANIFESTS and KUBECONFIG set, and CLUSTER_NAME as the document's variable
#
# Lines that begin with "#$" are commands of a document that are not run, each group with the reason before it. Lines between
# "# ours" and "# end" are in no document.
#
# The commands for an account at AWS are not run, because there is none. deploy/aws/cloudformation.yaml takes the place of all that
# make roles, profiles and queues; a test finds each name of the table in it.
#
#   in the documents                               in deploy/aws/cloudformation.yaml
#   --parameter-overrides ClusterName=             parameter ClusterName
#   role KarpenterNodeRole-${CLUSTER_NAME}         RoleName: !Sub KarpenterNodeRole-${ClusterName}
#   KarpenterNodeInstanceProfile-${CLUSTER_NAME}   InstanceProfileName: !Sub KarpenterNodeInstanceProfile-${ClusterName}
#   eksctl create iamidentitymapping               NodeAccessEntry: nodes with that role may join
#   eksctl create iamserviceaccount, the policy    ControllerRole with its policy, and ControllerIdentity; with Identity=IRSA and
#     KarpenterControllerPolicy-${CLUSTER_NAME}      OidcIssuer in place of eksctl utils associate-iam-oidc-provider
#   the queue of settings.interruptionQueue        InterruptionQueue, which has the cluster's name
#
# The fourth document's settings.aws.defaultInstanceProfile=KarpenterNodeInstanceProfile is a profile of the reader's own, which the
# account of the tests has; write the template's there, which ends in the cluster's name.
set -euo pipefail

# kubectl is the real one. "logs -f" would not end: here it does as soon as the log has said $UNTIL.
kubectl() {
  if [[ "$1 $2" == "logs -f" ]]; then
    exec 3< <(exec kubectl "$@")
    local follows=$!
    grep --max-count=1 -e "$UNTIL" <&3
    kill "$follows"
    exec 3<&-
  else
    command kubectl "$@"
  fi
}

# The definitions and the service account, which other commands make in the documents of 2021.
prepare() {
  helm upgrade --install karpenter-crd "$CRD_CHART" --namespace default --take-ownership # --skip-crds leaves them out
  command kubectl create namespace karpenter --dry-run=client -o yaml | command kubectl apply -f -
  command kubectl create serviceaccount karpenter --namespace karpenter # eksctl create iamserviceaccount
}

# The first document: an introduction with version 0.5.0.
document_000() {
#   A cluster at AWS; here the lab is one.
#$ cat <<EOF > cluster.yaml
#$ eksctl create cluster -f cluster.yaml

# ours
  prepare
# end

#   The chart's address; here it is a folder.
#$ helm repo add karpenter https://charts.karpenter.sh
#$ helm repo update
  helm upgrade --install --skip-crds karpenter $CHART --namespace karpenter \
  --create-namespace --set serviceAccount.create=false --version 0.5.0 \
  --set controller.clusterName=eks-karpenter-demo \
  --set controller.clusterEndpoint=$(aws eks describe-cluster --name eks-karpenter-demo --query "cluster.endpoint" --output json) \
  --wait # for the defaulting webhook to install before creating a Provisioner

#   The document's text has a broken indentation, so the manifest is a file here.
#$ cat <<EOF | kubectl apply -f -
  kubectl apply -f "$MANIFESTS/000-01-provisioner.yaml"

#   kubectl create deployment has no flag --requests.cpu.
#$ kubectl create deployment inflate --image=public.ecr.aws/eks-distro/kubernetes/pause:3.2 --requests.cpu=1
  kubectl create deployment inflate \
          --image=public.ecr.aws/eks-distro/kubernetes/pause:3.2
  kubectl set resources deployment inflate --requests=cpu=1

  kubectl scale deployment inflate --replicas 10
  UNTIL='"launched nodeclaim"'
  kubectl logs -f -n karpenter $(kubectl get pods -n karpenter -l karpenter=controller -o name)
# ours
  kubectl rollout status deployment inflate --timeout 2m
# end

  kubectl delete deployment inflate
  UNTIL='"deleted nodeclaim".*"reason":"Empty"'
  kubectl logs -f -n karpenter $(kubectl get pods -n karpenter -l karpenter=controller -o name)

# ours: "If you delete a node with kubectl", says the document.
  kubectl create deployment inflate --image=public.ecr.aws/eks-distro/kubernetes/pause:3.2
  kubectl set resources deployment inflate --requests=cpu=1
  kubectl rollout status deployment inflate --timeout 2m
  kubectl delete $(kubectl get nodes -l karpenter.sh/provisioner-name=default -o name)
  kubectl rollout status deployment inflate --timeout 2m
# end
}

# The third document: a reference card with version 1.1.1.
document_002() {
  # Managed NodeGroups
  helm --namespace 'kube-system' upgrade --create-namespace \
  --install 'karpenter' $CHART --version '1.1.1' \
  --set 'settings.clusterName=myCluster' \
  --set 'settings.interruptionQueue=myCluster' \
  --set 'controller.resources.requests.cpu=1' \
  --set 'controller.resources.requests.memory=1Gi' \
  --set 'controller.resources.limits.cpu=1' \
  --set 'controller.resources.limits.memory=1Gi' \
  --wait

  # Fargate
  # As per the managed NodeGroups, but with a serviceAccount annotation
  helm --namespace 'kube-system' upgrade --create-namespace \
  --install 'karpenter' $CHART --version '1.1.1' \
  --set 'settings.clusterName=myCluster' \
  --set 'settings.interruptionQueue=myCluster' \
  --set 'controller.resources.requests.cpu=1' \
  --set 'controller.resources.requests.memory=1Gi' \
  --set 'controller.resources.limits.cpu=1' \
  --set 'controller.resources.limits.memory=1Gi' \
  --wait \
  --set 'serviceAccount.annotations."eks.amazonaws.com/role-arn"=arn:aws:iam::012345678901:role/myCluster-karpenter'

# ours
  command kubectl get serviceaccount karpenter -n kube-system -o yaml | grep 'eks.amazonaws.com/role-arn: arn:aws:iam::012345678901:role/myCluster-karpenter'
  kubectl logs -n kube-system -l karpenter=controller
# end
}

# The fourth document: a guide with version 0.32.
document_003() {
#   The chart's address; here it is a folder.
#$ helm repo add karpenter oci://public.ecr.aws/karpenter/karpenter
#$ helm repo update
  helm install karpenter $CHART \
     --version v0.32.0 \
     --namespace karpenter \
     --create-namespace \
     --set serviceAccount.annotations."eks\.amazonaws\.com/role-arn"=${KARPENTER_IAM_ROLE_ARN} \
     --set settings.aws.clusterName=${CLUSTER_NAME} \
     --set settings.aws.defaultInstanceProfile=KarpenterNodeInstanceProfile \
     --wait

  kubectl get pods -n karpenter

# ours: the manifests are printed without a command.
  kubectl apply -f "$MANIFESTS/003-03-nodepool.yaml" -f "$MANIFESTS/003-04-ec2nodeclass.yaml" -f "$MANIFESTS/003-05-pod.yaml"
  kubectl wait --for condition=Ready nodepool/default ec2nodeclass/default --timeout 2m
# end

  kubectl get pods --field-selector=status.phase=Pending
#   <pod-name> and the like are placeholders.
#$ kubectl describe pod <pod-name>
  until kubectl describe pod my-app | grep 'FailedScheduling.*karpenter .*example.com/special-taint'; do kubectl get pod my-app; done
  kubectl logs -n karpenter -l app.kubernetes.io/name=karpenter
  kubectl get nodepool
#$ kubectl describe nodepool <nodepool-name>
  kubectl describe nodepool default
  kubectl get ec2nodeclass
#$ kubectl describe ec2nodeclass <nodeclass-name>
  kubectl describe ec2nodeclass default

# ours: a NodePool further down in the document has no taint.
  kubectl apply -f "$MANIFESTS/003-11-nodepool.yaml"
  kubectl wait --for condition=Ready pod/my-app --timeout 2m
# end

  kubectl get nodes --show-labels
}

# The fifth document: a workshop with version 0.4.3.
document_004() {
#   Names of the reader's own; here they are set.
#$ export CLUSTER_NAME=$(eksctl get clusters -o json | jq -r '.[0].metadata.name')
#$ export ACCOUNT_ID=$(aws sts get-caller-identity --output text --query Account)
#$ export AWS_REGION=$(curl -s 169.254.169.254/latest/dynamic/instance-identity/document | jq -r '.region')

#   Tags of the subnets. Tenon finds those with this tag, too; the lab's account has karpenter.sh/discovery.
#$ SUBNET_IDS=$(aws cloudformation describe-stacks --stack-name eksctl-${CLUSTER_NAME}-cluster --query 'Stacks[].Outputs[?OutputKey==`SubnetsPrivate`].OutputValue' --output text)
#$ aws ec2 create-tags --resources $(echo $SUBNET_IDS | tr ',' '\n') --tags Key="kubernetes.io/cluster/${CLUSTER_NAME}",Value=

#   Roles and rights: see the table at the top.
#$ TEMPOUT=$(mktemp)
#$ curl -fsSL https://karpenter.sh/docs/getting-started/cloudformation.yaml > $TEMPOUT && aws cloudformation deploy --stack-name Karpenter-${CLUSTER_NAME} --template-file ${TEMPOUT} --capabilities CAPABILITY_NAMED_IAM --parameter-overrides ClusterName=${CLUSTER_NAME}
#$ eksctl create iamidentitymapping --username system:node:{{EC2PrivateDNSName}} --cluster ${CLUSTER_NAME} --arn arn:aws:iam::${ACCOUNT_ID}:role/KarpenterNodeRole-${CLUSTER_NAME} --group system:bootstrappers --group system:nodes
#$ eksctl utils associate-iam-oidc-provider --cluster $CLUSTER_NAME --approve
#$ eksctl create iamserviceaccount --cluster $CLUSTER_NAME --name karpenter --namespace karpenter --attach-policy-arn arn:aws:iam::$ACCOUNT_ID:policy/KarpenterControllerPolicy-$CLUSTER_NAME --approve

# ours
  prepare
# end

#   The chart's address; here it is a folder.
#$ helm repo add karpenter https://charts.karpenter.sh
#$ helm repo update
  helm upgrade --install karpenter $CHART --namespace karpenter \
  --create-namespace --set serviceAccount.create=false --version 0.4.3 \
  --set controller.clusterName=${CLUSTER_NAME} \
  --set controller.clusterEndpoint=$(aws eks describe-cluster --name ${CLUSTER_NAME} --query "cluster.endpoint" --output json) \
  --set defaultProvisioner.create=false \
  --wait # for the defaulting webhook to install before creating a Provisioner

  cat <<EOF | kubectl apply -f -
apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata:
  name: default
spec:
  provider:
    instanceProfile: KarpenterNodeInstanceProfile-${CLUSTER_NAME}
  ttlSecondsAfterEmpty: 30
EOF

  cat <<EOF | kubectl apply -f -
apiVersion: apps/v1
kind: Deployment
metadata:
  name: inflate
spec:
  replicas: 0
  selector:
    matchLabels:
      app: inflate
  template:
    metadata:
      labels:
        app: inflate
    spec:
      containers:
        - name: inflate
          image: public.ecr.aws/eks-distro/kubernetes/pause:3.2
          resources:
            requests:
              cpu: 1
EOF
  kubectl scale deployment inflate --replicas 15
  UNTIL='"launched nodeclaim"'
  kubectl logs -f -n karpenter $(kubectl get pods -n karpenter -l karpenter=controller -o name)
# ours
  kubectl rollout status deployment inflate --timeout 2m
# end

  kubectl delete deployment inflate
  UNTIL='"deleted nodeclaim".*"reason":"Empty"'
  kubectl logs -f -n karpenter $(kubectl get pods -n karpenter -l karpenter=controller -o name)
}

"document_$1"
