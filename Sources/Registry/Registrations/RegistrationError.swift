import Model

/// An error of a registration.
package enum RegistrationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A member of the request is invalid; with the reason.
    case invalid(String)
    /// There is no such kind of endpoint; with the list.
    case unknownKind(String)
    /// The sender's address must not be dialled; with the reason.
    case address(String)
    /// The broker itself listens on the port.
    case ownPort(UInt16)
    /// The grant has no such registration, or its time is over.
    case notFound(id: String)
    /// The heartbeat comes from another address than the registration.
    case moved(id: String)
    case tooManyPerGrant(limit: Int)
    /// The grant has registered too many different apps, ended ones included.
    case tooManyDifferent(limit: Int)
    case tooOften(limit: Int)
    case tooMany(limit: Int)

    package var description: String {
        switch self {
        case .invalid(let reason), .unknownKind(let reason), .address(let reason): reason
        case .ownPort(let port): "port \(port) of this machine is the broker's own"
        case .notFound(let id): "the grant has no registration \"\(SanitizedText(id))\"; it may have ended"
        case .moved(let id): "the registration \"\(SanitizedText(id))\" was sent from another address"
        case .tooManyPerGrant(let limit): "the grant has \(limit) registered apps already, which is the limit"
        case .tooManyDifferent(let limit): "the grant has registered \(limit) different apps, which is the limit"
        case .tooOften(let limit): "the grant has sent \(limit) registrations in one minute, which is the limit"
        case .tooMany(let limit): "\(limit) apps are registered already, which is the limit"
        }
    }

    /// The next step of the app.
    package var hint: String {
        switch self {
        case .invalid, .unknownKind: "see RegistrationSpec in GET /openapi.json"
        case .address: "send the request from the device on which the app runs"
        case .ownPort: "let the app listen on another port, and register again: POST /v1/registrations"
        case .notFound, .moved: "register again: POST /v1/registrations"
        case .tooManyDifferent: "get a new grant: patchbay pair --device"
        case .tooOften: "register once per launch, and send heartbeats: PUT /v1/registrations/ID"
        case .tooManyPerGrant, .tooMany: "end a registration: DELETE /v1/registrations/ID"
        }
    }
}
