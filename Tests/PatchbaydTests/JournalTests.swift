import FoundationEssentials
import Glibc
import Logging
import SystemIO
import TestSupport
import Testing

@testable import patchbayd

/// Log entries in the native protocol of systemd's journal, with a socket in place of the journal.
@Suite(.scratchFolder) struct JournalTests {
    private let scratch = ScratchFolder.current

    private static func logger(_ journal: JournalSocket?, _ level: SharedLogLevel, output: CInt = 2) -> Logger {
        Logger(label: "patchbayd") { _ in
            BrokerLogHandler(journal: journal, level: level, output: StandardErrorWriter(descriptor: output))
        }
    }

    @Test func `an entry has its message first, quoted values, a priority and fields`() async throws {
        let listener = try DatagramListener(scratch.file("journal"))
        let logger = Self.logger(JournalSocket(path: scratch.file("journal")), SharedLogLevel("info"))

        logger.warning(
            "the phone is locked",
            metadata: ["udid": "0-1", "reason": "say \"yes\"", "changes not shown": "3"]
        )

        let text = String(decoding: listener.receive() ?? [], as: UTF8.self)
        #expect(
            text == """
                MESSAGE=the phone is locked changes_not_shown=3 reason="say \\"yes\\"" udid=0-1
                PRIORITY=4
                SYSLOG_IDENTIFIER=patchbayd
                PATCHBAY_EVENT=the phone is locked
                PATCHBAY_CHANGES_NOT_SHOWN=3
                PATCHBAY_REASON=say "yes"
                PATCHBAY_UDID=0-1

                """
        )
    }

    @Test func `a value with a line break has the binary form, and cannot add a field`() {
        let line = LogLine(message: "x", fields: [.init(name: "name", value: "a\nPRIORITY=0")])

        let bytes = JournalSocket.datagram(line, priority: 6)

        let text = String(decoding: bytes, as: UTF8.self)
        #expect(text.hasPrefix("MESSAGE=x name=\"a\\nPRIORITY=0\"\nPRIORITY=6\n"), "\(text)")
        #expect(text.hasSuffix("PATCHBAY_NAME\n\u{C}\0\0\0\0\0\0\0a\nPRIORITY=0\n"), "\(text)")
    }

    @Test func `without the journal, the entry goes to standard error with its priority`() async throws {
        let (output, file) = (open(scratch.file("out"), O_CREAT | O_RDWR, 0o600), scratch.file("out"))
        defer { close(output) }

        Self.logger(JournalSocket(path: scratch.file("none")), SharedLogLevel("info"), output: output).error(
            "x",
            metadata: ["a": "b c"]
        )
        Self.logger(nil, SharedLogLevel("info"), output: output).notice("y")

        let text = try String(contentsOfFile: file, encoding: .utf8)
        #expect(text.hasPrefix("<3>x a=\"b c\"\n2"), "\(text)")
        #expect(text.hasSuffix(" notice patchbayd: y\n"), "\(text)")
    }

    @Test func `a change of the level applies to existing loggers`() async throws {
        let listener = try DatagramListener(scratch.file("journal"))
        let level = SharedLogLevel("info")
        let logger = Self.logger(JournalSocket(path: scratch.file("journal")), level)

        logger.debug("hidden")
        level.set("debug")
        logger.debug("shown")

        #expect(String(decoding: listener.receive() ?? [], as: UTF8.self).hasPrefix("MESSAGE=shown\nPRIORITY=7\n"))
        #expect(listener.receive() == nil)
    }

    @Test func `JOURNAL_STREAM names the device and the inode of the journal's stream`() {
        let file = FileStatus(of: 2)

        #expect(JournalSocket.isJournal(2, ["JOURNAL_STREAM": "\(file?.device ?? 0):\(file?.inode ?? 0)"]))
        #expect(!JournalSocket.isJournal(2, ["JOURNAL_STREAM": "1:1"]))
        #expect(!JournalSocket.isJournal(2, [:]))
    }
}
