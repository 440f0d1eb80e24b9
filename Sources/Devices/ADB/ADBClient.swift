import Glibc
import Model
import SystemIO

/// Makes single requests to an adb server, each on a connection of its own and with a time limit.
///
/// The server has no time limits, and a phone that is frozen never answers.
struct ADBClient: Sendable {
    /// The maximum size of an output in bytes. Longer ones are cut.
    private static let outputLimit = 64 << 10

    let address: ServerAddress
    let timeout: Duration

    init(address: ServerAddress, timeout: Duration = .seconds(5)) { (self.address, self.timeout) = (address, timeout) }

    /// Returns the phones that the server lists now.
    ///
    /// - Throws: `ADBError`; `CancellationError`.
    func devices() async throws -> [ADBDeviceRecord] {
        ADBDeviceRecord.list(try await text(.devices))
    }

    /// Returns the protocol version of the server, such as 41. Another program's server of another version is replaced
    /// by that program.
    ///
    /// - Throws: `ADBError`; `CancellationError`.
    func version() async throws -> Int {
        let text = String(decoding: try await text(.version), as: UTF8.self)
        guard let version = Int(text, radix: 16) else { throw ADBError.malformedAnswer("a version that is no number") }
        return version
    }

    private func text(_ request: ADBRequest) async throws -> [UInt8] {
        try await exchange([request]) { connection in try await connection.readText(of: request) }
    }

    /// Returns the output of a command of a phone's shell.
    ///
    /// - Throws: `ADBError`; `CancellationError`.
    func output(of command: String, on id: ADBTransportID) async throws -> String {
        let bytes = try await exchange([.transport(id), .shell(command)]) { connection in
            var output: [UInt8] = []
            while output.count < Self.outputLimit {
                do {
                    output += try await connection.receive(atMost: Self.outputLimit - output.count)
                } catch ADBError.closed { break }
            }
            return output
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func exchange<Answer: Sendable>(
        _ requests: [ADBRequest],
        _ read: @escaping @Sendable (ADBConnection) async throws -> Answer
    ) async throws -> Answer {
        let name = requests.last?.service ?? ""
        let answer = try await withTimeout(timeout, clock: PollerClock()) { [address] in
            let connection = try await ADBConnection(to: address)
            for request in requests { try await connection.request(request) }
            return try await read(connection)
        }
        guard let answer else { throw ADBError.timedOut(request: name, limit: timeout) }
        return answer
    }
}

/// A connection to an adb server.
final class ADBConnection: Sendable {
    let socket: Descriptor
    private let stream: ByteStream

    /// Connects. Has no timeout: the caller sets one and cancels.
    ///
    /// - Throws: `ADBError`; `CancellationError`.
    init(to address: ServerAddress) async throws {
        do {
            let socket = try await address.connect()
            stream = ByteStream(over: socket.number, to: "the adb server")
            self.socket = socket
        } catch SocketError.failed(_, _, let code) where [ENOENT, ENOTDIR, ECONNREFUSED].contains(code) {
            throw ADBError.absent(address)
        } catch let error as SocketError {
            throw ADBError.failed(call: "connecting to the adb server at \(address)", message: "\(error)")
        }
    }

    /// Sends a request and reads the answer. The data of the request follows.
    ///
    /// - Throws: `ADBError`, also if the server refuses the request; `CancellationError`.
    func request(_ request: ADBRequest) async throws {
        do { try await stream.send(request.encoded) } catch let failure as ByteStream.Failure {
            throw ADBError(failure, during: request.service)
        }
        try await readAnswer(to: request)
    }

    /// Reads an answer, such as the further one of a phone.
    ///
    /// - Throws: `ADBError`, also if the request is refused; `CancellationError`.
    func readAnswer(to request: ADBRequest) async throws {
        var decoder = ADBAnswerDecoder()
        while true {
            switch try decoder.next() {
            case nil: decoder.append(try await receive(atMost: decoder.bytesNeeded, for: request.service))
            case .okay: return
            case .failed(let reason): throw ADBError.refused(reason, request: request.service)
            }
        }
    }

    /// Reads a text that follows the answer, without its length.
    ///
    /// - Throws: `ADBError`; `CancellationError`.
    func readText(of request: ADBRequest) async throws -> [UInt8] {
        var decoder = ADBTextDecoder()
        while true {
            if let text = try decoder.next() { return text }
            decoder.append(try await receive(atMost: decoder.bytesNeeded, for: request.service))
        }
    }

    /// Receives the available bytes: at least one, and at most `limit`.
    ///
    /// - Throws: `ADBError`; `CancellationError`.
    func receive(atMost limit: Int, for request: String = "a request") async throws -> [UInt8] {
        do { return try await stream.receive(atMost: limit) } catch let failure as ByteStream.Failure {
            throw ADBError(failure, during: request)
        }
    }
}

extension ADBError {
    fileprivate init(_ failure: ByteStream.Failure, during request: String) {
        switch failure {
        case .closed: self = .closed(request: request)
        case .failed(let call, let errno): self = .failed(call: call, message: SocketError.message(for: errno))
        }
    }
}
