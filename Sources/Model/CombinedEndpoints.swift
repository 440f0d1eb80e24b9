extension Sequence<Endpoint> {
    /// The list with each app as one endpoint: an endpoint that reaches the same launch as a cabled one is part of that
    /// one.
    ///
    /// Only for display. A combined endpoint lists the routes of both. Its ID gives no access to the routes of the other,
    /// because approvals, secrets and grants use the ID that holds the route. An endpoint stays separate if the list
    /// does not have the cabled one.
    package var combined: [Endpoint] {
        // Most lists have no parts, and grouping a long list takes time.
        guard contains(where: { $0.sameLaunchAs != nil }) else { return Array(self) }
        let ids = Set(lazy.filter { $0.sameLaunchAs == nil }.map(\.id))
        let parts = Dictionary(grouping: self) { part in part.sameLaunchAs.flatMap { ids.contains($0) ? $0 : nil } }
        return parts[nil, default: []].map { endpoint in parts[endpoint.id].map(endpoint.combined(with:)) ?? endpoint }
    }
}

extension Endpoint {
    /// Returns the endpoint with the routes and sources of others.
    fileprivate func combined(with parts: [Endpoint]) -> Endpoint {
        var whole = self
        whole.combinedWith = parts
        whole.routes += parts.flatMap(\.routes)
        if isOnOtherHost { whole.hostRoutes = shownRoutes + parts.flatMap(\.shownRoutes) }
        whole.sources = Set(sources + parts.flatMap(\.sources)).sorted { $0.rawValue < $1.rawValue }
        let ids = Set(parts.map(\.id))
        let others = possiblySameAs?.filter { !ids.contains($0) }
        whole.possiblySameAs = others?.isEmpty == true ? nil : others
        return whole
    }
}
