import DebugLink
import Model
import SystemIO

/// The sightings of the apps that are connected to the state debugger.
///
/// The protocol has no name of the app, so the address of the app's machine and its place there are its identity.
struct DebugAppSightings {
    private var listed: [Sighting.ID: DebugApp.ID] = [:]

    /// Returns the changes since the last call.
    mutating func update(_ connected: [DebugApp]) -> [SightingEvent] {
        let current = Dictionary(connected.map { (Self.id(of: $0), $0.id) }) { _, newest in newest }
        let lost = listed.keys.filter { current[$0] == nil }
        let new = connected.filter { current[Self.id(of: $0)] == $0.id && listed[Self.id(of: $0)] != $0.id }
        listed = current
        return lost.map { .lost($0) } + new.map { .seen(Self.sighting(of: $0)) }
    }

    private static func id(of app: DebugApp) -> Sighting.ID {
        Sighting.ID(source: .debuglink, key: "\(app.peer.host)#\(app.place)")
    }

    private static func sighting(of app: DebugApp) -> Sighting {
        let isOnly = app.place == 1
        return Sighting(
            id: id(of: app),
            kind: .debug,
            app: SanitizedText("debug-app"),
            appIsBundleID: false,
            name: SanitizedText(isOnly ? "app on \(app.peer.host)" : "app on \(app.peer.host) (\(app.place))"),
            host: app.route.host,
            role: SanitizedText(isOnly ? "" : "\(app.place)"),
            routes: [.network(app.route)]
        )
    }
}
