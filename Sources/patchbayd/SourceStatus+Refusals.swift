import Model
import Registry

extension SourceStatus {
    /// What the list has no room for; nil when it has room for everything.
    init?(of refusals: Refusals) {
        guard !refusals.isEmpty else { return nil }
        var losses: [String] = []
        let (crowded, beyond) = (refusals.count(by: .perAddress), refusals.count(by: .total))
        if crowded > 0 {
            losses.append("\(crowded) because one address may bring \(EndpointTable.limitPerAddress) endpoints")
        }
        if beyond > 0 { losses.append("\(beyond) because \(EndpointTable.limit) endpoints are the limit") }
        self.init(
            name: "list",
            state: .ok,
            detail: "adverts are not listed: " + losses.joined(separator: ", "),
            remedy: "see who advertises so many with `avahi-browse -art`, or narrow discovery.interfaces"
        )
    }
}
