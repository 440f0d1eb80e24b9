import Model
import SystemIO

/// The sightings of the apps that connected to the state debugger. An app that has disconnected is offline, and stays
/// readable while its states are held.
///
/// The protocol has no name of the app, so the address of the app's machine and its place there are its identity.
struct DebugAppSightings {
    private var listed: [Sighting.ID: Sighting] = [:]

    /// Returns the changes since the last call. A client without a message is no app.
    mutating func update(_ apps: [DebugApp]) -> [SightingEvent] {
        let sightings = apps.compactMap(Self.sighting)
        let current = Dictionary(sightings.map { ($0.id, $0) }) { _, newest in newest }
        let lost = listed.keys.filter { current[$0] == nil }
        let changed = sightings.filter { current[$0.id] == $0 && listed[$0.id] != $0 }
        listed = current
        return lost.map { .lost($0) } + changed.map { .seen($0) }
    }

    private static func sighting(of app: DebugApp) -> Sighting? {
        guard let place = app.place else { return nil }
        let isOnly = place == 1
        return Sighting(
            id: Sighting.ID(source: .debuglink, key: "\(app.peer.host)#\(place)"),
            kind: .debug,
            app: SanitizedText("debug-app"),
            appIsBundleID: false,
            name: SanitizedText(isOnly ? "app on \(app.peer.host)" : "app on \(app.peer.host) (\(place))"),
            machine: app.route.machine,
            role: SanitizedText(isOnly ? "" : "\(place)"),
            routes: [.network(app.route)],
            availability: availability(of: app)
        )
    }

    private static func availability(of app: DebugApp) -> Sighting.Availability {
        guard app.isConnected else {
            let end = app.failure.map { "the state debugger ended the connection: \($0)" } ?? "the app disconnected"
            return .offline("\(end); the states of this launch can still be read")
        }
        return app.stall.map { .suspect($0) } ?? .available
    }
}
