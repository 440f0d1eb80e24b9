package import MCP
package import Model

/// What agents find behind the doors.
package struct Agents: Sendable {
    /// At `/mcp`.
    package let broker: any AgentServer
    /// At `/e/{id}/mcp`.
    package let app: @Sendable (EndpointID) -> any AgentServer
    /// At `/all/mcp`; nil where the configuration does not want it.
    package let all: (any AgentServer)?
    package let apps: any Apps
    package let sessions: SessionDesk
    package let heartbeat: Heartbeat
    package let artifacts: any Artifacts

    package init(
        broker: any AgentServer,
        app: @escaping @Sendable (EndpointID) -> any AgentServer,
        all: (any AgentServer)?,
        apps: any Apps,
        sessions: SessionDesk,
        heartbeat: Heartbeat,
        artifacts: any Artifacts
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
