import Sockets

/// Checks the audit log on the files' thread, as it may be long.
actor AuditCheck {
    nonisolated var unownedExecutor: UnownedSerialExecutor { SerialThread.files.asUnownedSerialExecutor() }

    func run(_ path: String, head: AuditLine.Head) throws -> AuditReport { try AuditFile.verify(path, head: head) }
}
