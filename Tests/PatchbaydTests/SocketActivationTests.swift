import Synchronization
import Testing

@testable import patchbayd

@Suite struct SocketActivationTests {
    @Test func `descriptors without LISTEN_PID are ignored, and one line says so`() throws {
        let log = LogLines()

        let activation = try SocketActivation(environment: ["LISTEN_FDS": "1"], logger: log.logger)

        #expect(activation.unix == nil && activation.tcp.isEmpty)
        let lines = log.texts.withLock { $0 }
        #expect(lines.count == 1 && lines[0].contains("LISTEN_PID is not set"), "\(lines)")
    }

    @Test(arguments: ["1", "abc", "", "-1"])
    func `descriptors of another process are ignored silently`(pid: String) throws {
        let log = LogLines()
        let environment = ["LISTEN_FDS": "1", "LISTEN_PID": pid]

        let activation = try SocketActivation(environment: environment, logger: log.logger)

        #expect(activation.unix == nil && activation.tcp.isEmpty && log.texts.withLock { $0.isEmpty })
    }
}
