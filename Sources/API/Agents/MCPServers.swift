package import MCP
package import Model

/// What agents find behind the doors.
package struct MCPServers: Sendable {
    /// At `/mcp`.
    package let broker: any MCPServer
    /// At `/e/{id}/mcp`.
    package let app: @Sendable (EndpointID) -> any MCPServer
    /// At `/all/mcp`; nil where the configuration does not want it.
    package let all: (any MCPServer)?
    package let apps: any AppCaller
    package let sessions: SessionStore
    package let heartbeat: KeepAliveTimer
    package let artifacts: any ArtifactReader

    package init(
        broker: any MCPServer,
        app: @escaping @Sendable (EndpointID) -> any MCPServer,
        all: (any MCPServer)?,
        apps: any AppCaller,
        sessions: SessionStore,
        heartbeat: KeepAliveTimer,
        artifacts: any ArtifactReader
    ) {
        self.broker = broker
        self.app = app
        self.all = all
        self.apps = apps
        self.sessions = sessions
        self.heartbeat = heartbeat
        self.artifacts = artifacts
    }
}
