import Model
import Synchronization

/// The users that apps have on Android phones, so that the log of an app can be read after its end.
///
/// A user is kept for an endpoint if it owned the endpoint's port, and if the endpoint has the name of its only package.
/// So an app with another app's name gets nothing of that one.
package final class PhoneAppUsers: Sendable {
    /// The maximum number of endpoints.
    private static let limit = 1_024

    private let users = Mutex<[EndpointID: (udid: UDID, user: UInt32)]>([:])
    private let changes = Broadcast<EndpointID>(slow: .keepsNewest(64))

    package init() {}

    /// The user of an app on a phone; nil if it is not known.
    func user(of id: EndpointID, on udid: UDID) -> UInt32? {
        users.withLock { $0[id].flatMap { $0.udid == udid ? $0.user : nil } }
    }

    /// Keeps the user that owns a port of an endpoint, if the package is the app of the endpoint.
    func observe(_ port: PhonePort, of endpoint: Endpoint, on udid: UDID) {
        guard port.app == endpoint.app else { return }
        let isNew = users.withLock { users in
            guard users[endpoint.id]?.udid != udid || users[endpoint.id]?.user != port.user,
                users[endpoint.id] != nil || users.count < Self.limit
            else { return false }
            users[endpoint.id] = (udid, port.user)
            return true
        }
        if isNew { changes.send(endpoint.id) }
    }

    /// Returns when an endpoint has another user than this one, as after the app was installed again; or when cancelled.
    func waitForChange(of id: EndpointID, on udid: UDID, from user: UInt32) async {
        let changes = changes.subscribe(startingWith: id)
        for await changed in changes where changed == id {
            if let new = self.user(of: id, on: udid), new != user { return }
        }
    }
}
