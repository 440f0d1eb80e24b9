import Model

/// Which of several routes is tried first: approved ones, then the cable, then the network from the most to the least
/// likely to work.
enum RoutePreference {
    static func sorted(_ routes: some Sequence<EndpointRoute>) -> [EndpointRoute] {
        routes.sorted { one, other in
            guard one.isApproved == other.isApproved else { return one.isApproved }
            let (first, second) = (rank(one.route), rank(other.route))
            return first == second ? one.description < other.description : first < second
        }
    }

    private static func rank(_ route: Route) -> Int {
        guard case .lan(let lan) = route else { return 0 }
        let address = lan.address.lowercased()
        return switch true {
        case !address.contains(":"): address.hasPrefix("169.254.") ? 3 : 1
        case address.hasPrefix("fe80"): 4
        default: 2
        }
    }
}
