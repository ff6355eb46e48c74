package kwok
import ("testing"; "strings"
v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
corev1 "k8s.io/api/core/v1"
"k8s.io/apimachinery/pkg/api/resource"
"github.com/tenon-sh/tenon/cloudprovider/kwok/catalog"
"github.com/tenon-sh/tenon/cloudprovider/choose")
func BenchmarkRanked(b *testing.B){
 types,_:=catalog.Default()
 claim:=&v1.NodeClaim{}
 claim.Spec.Resources.Requests=corev1.ResourceList{"cpu":resource.MustParse("3")}
 b.Run("all",func(b *testing.B){ for range b.N { choose.Ranked(types,claim)}})
 var names []string; for _,t:=range types { if strings.HasSuffix(t.Name,".4xlarge") {names=append(names,t.Name)}}
 claim.Spec.Requirements=[]v1.NodeSelectorRequirementWithMinValues{{Key:corev1.LabelInstanceTypeStable,Operator:"In",Values:names},{Key:v1.CapacityTypeLabelKey,Operator:"In",Values:[]string{"spot"}}}
 b.Run("some",func(b *testing.B){ for range b.N { choose.Ranked(types,claim)}})
}
