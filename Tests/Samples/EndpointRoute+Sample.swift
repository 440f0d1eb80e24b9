package import Model

extension EndpointRoute {
    /// Creates a route that is approved unless it is announced, as the registry decides without any approval.
    package init(
        _ route: Route,
        app: SanitizedText = SanitizedText(""),
        appIsBundleID: Bool = false,
        launchID: SanitizedText? = nil,
        mismatch: SanitizedText? = nil
    ) {
        self.init(
            route,
            app: app,
            appIsBundleID: appIsBundleID,
            launchID: launchID,
            approval: route.machine == nil ? .approved : .pending,
            mismatch: mismatch
        )
    }
}
