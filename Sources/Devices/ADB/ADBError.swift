package import Model
import SystemIO

/// An error of a request to the adb server.
package enum ADBError: Error, Hashable {
    /// The text is not an address of an adb server; the text has the reason.
    case badAddress(String)
    /// Nothing listens at the address (ENOENT, ECONNREFUSED). Normal on a machine without adb.
    case absent(ServerAddress)
    /// The server closed the connection in the middle of an answer, or without one.
    case closed(request: String)
    /// The server did not answer in time.
    case timedOut(request: String, limit: Duration)
    /// The server answered `FAIL` with this reason.
    case refused(SanitizedText, request: String)
    /// The received data is not an answer of an adb server; the text names the problem.
    case malformedAnswer(String)
    /// A system call failed.
    case failed(call: String, message: String)
}

extension ADBError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .badAddress(let reason): reason
        case .absent(let address): "no adb server is running at \(address); start it with `adb start-server`"
        case .closed(let request):
            "the adb server closed the connection before it answered \(request); it may be stopping: try again"
        case .timedOut(let request, let limit):
            "no answer to \(request) within \(limit.components.seconds) s; restart the server with `adb kill-server` and "
                + "`adb start-server`"
        case .refused(let reason, let request): "the adb server refused \(request): \(reason)"
        case .malformedAnswer(let problem):
            "invalid data from the adb server: \(problem); check which program listens on its port"
        case .failed(let call, let message): "\(call) failed (\(message))"
        }
    }
}
