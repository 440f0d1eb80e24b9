package import Model

extension SourceStatus {
    /// The status of sightings rejected by the registry's limits; nil if there are none.
    package init?(of refusals: RefusedSightings) {
        var causes: [String] = []
        let limits = EndpointLimits.standard
        let (perAddress, total) = (refusals.count(by: .perAddress), refusals.count(by: .total))
        if perAddress > 0 {
            causes.append(
                "\(perAddress) because the limit per address is \(limits.perAddress) endpoints without approval"
            )
        }
        if total > 0 { causes.append("\(total) because the total limit is \(limits.total) endpoints") }
        guard !causes.isEmpty else { return nil }
        self.init(
            name: "list",
            state: .ok,
            detail: "adverts are not listed: " + causes.joined(separator: ", ") + "; among them "
                + refusals.examples(3).joined(separator: ", "),
            hint: "find the advertiser with `avahi-browse -art`, or restrict discovery.interfaces"
        )
    }
}
