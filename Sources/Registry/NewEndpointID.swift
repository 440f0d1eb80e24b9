import Model

/// The two words of a new endpoint's ID: the app and the place. Only the ID of a configured endpoint may have one word.
///
/// An app chooses its own names. A bare word as its ID would hide endpoints whose short name is that word.
struct NewEndpointID {
    private let app: SanitizedText
    private let location: String

    /// - Parameters:
    ///   - sighting: The first sighting of the endpoint.
    ///   - deviceName: The name that the phone of a USB endpoint reports.
    init(for sighting: Sighting, deviceName: SanitizedText?) {
        guard sighting.id.source != .config else {
            // The owner chose this name and looks for the endpoint under it, whatever app it is.
            (app, location) = (sighting.name, "")
            return
        }
        let name = EndpointID.slug(ofApp: sighting.app)
        // The pages of an app are another endpoint beside its debug server, which has the short name.
        let isPages = sighting.id.source.isPhone && sighting.kind == .web && !name.isEmpty
        app = isPages ? SanitizedText("web-\(name)") : name.isEmpty ? SanitizedText(sighting.kind.text) : sighting.app
        location = Self.locations(of: sighting, deviceName).first { !EndpointID.slug($0).isEmpty } ?? "host"
    }

    /// The names of the place, best first.
    private static func locations(of sighting: Sighting, _ deviceName: SanitizedText?) -> [String] {
        let machine = sighting.machine?.text ?? ""
        let names: [String?] =
            switch sighting.id.source {
            case .config: []
            case .usbmuxd, .adb:
                [
                    deviceName.flatMap { IdentityKey.machineName(ofDeviceNamed: $0) },
                    sighting.device.map { "phone-\($0.text.suffix(6))" },
                ]
            // The apostrophe of "Anna’s iPhone" separates no words, as in the name over the cable.
            case .bonjour: [String(sighting.machineName.stablePart.filter { $0 != "'" && $0 != "’" })]
            case .debuglink: [machine]
            case .registration:
                [
                    IdentityKey.machineName(ofDeviceNamed: SanitizedText(machine)),
                    IdentityKey.candidates(for: sighting).first?.grant.map(String.init),
                ]
            }
        return names.compactMap(\.self)
    }

    /// Returns the ID with a number if `attempt` is above 1.
    func id(attempt: Int) -> EndpointID { EndpointID(app: app, location: location, attempt: attempt) }
}

extension EndpointIndex {
    /// The ID for a new endpoint: made of app and place, with a number if another app has that ID or had it.
    ///
    /// An app that chose its own names gets no ID with which another ID begins, because a short name would then select
    /// this app. Its own former ID is an exception.
    func freeID(for sighting: Sighting, deviceName: SanitizedText?) -> EndpointID {
        let new = NewEndpointID(for: sighting, deviceName: deviceName)
        let keys = IdentityKey.reservations(for: sighting)
        if let id = retired.earlierID(for: IdentityKey.withoutNumber(for: sighting)), self[id] == nil { return id }
        let isTrusted = sighting.id.source == .config || sighting.id.source.isPhone
        let beginnings = isTrusted ? [] : idBeginnings(from: new.id(attempt: 1))
        var attempt = 1
        while true {
            let id = new.id(attempt: attempt)
            let isOwn = retired.contains(id) && retired.isFree(id, for: keys)
            let isUsed = entry(everCalled: id) != nil || retired.contains(id) || beginnings.contains(id.text[...])
            if self[id] == nil, isOwn || !isUsed { return id }
            attempt += 1
        }
    }

    /// The proper beginnings of listed and retired IDs, among those that `freeID` may try from this first ID on.
    private func idBeginnings(from first: EndpointID) -> Set<Substring> {
        // A number shortens a long ID, by at most 6 characters.
        let stem = first.text.prefix(EndpointID.lengthLimit - 6)
        var beginnings: Set<Substring> = []
        for text in ids.map(\.text) + retired.texts where text.hasPrefix(stem) {
            for length in stem.count..<text.count { beginnings.insert(text.prefix(length)) }
        }
        return beginnings
    }
}
