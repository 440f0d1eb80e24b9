package import Model
import Probes
import Registry

extension EndpointRegistry: LivenessBoard {
    package func endpointsToProbe() -> [Endpoint] { endpoints }
}
