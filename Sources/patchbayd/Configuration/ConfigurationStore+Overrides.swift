import Devices
import Glibc
import Model

extension Configuration {
    /// Returns the configuration with the options of the command line, which are in the names of the keys.
    func replacing(_ options: [String: String]) -> Configuration {
        var configuration = self
        configuration.broker.socket = options["broker.socket"] ?? broker.socket
        configuration.broker.stateDirectory = options["broker.state_directory"] ?? broker.stateDirectory
        configuration.broker.logLevel = options["broker.log_level"] ?? broker.logLevel
        return configuration
    }
}

extension ConfigurationStore.Override {
    /// The values that come from the command line, the environment, and defaults that depend on the environment.
    static func all(
        of configuration: Configuration,
        options: [String: String],
        directory: String,
        environment: [String: String]
    ) -> [Self] {
        var overrides = options.sorted { $0.key < $1.key }.map { key, value in
            let flag = "--" + key.drop { $0 != "." }.dropFirst().replacing("_", with: "-")
            return Self(key: key, value: value, source: .option, place: flag)
        }
        func add(_ key: String, _ value: String, from variables: [String]) {
            let variable = variables.first { environment[$0]?.isEmpty == false }
            overrides.append(
                .init(
                    key: key,
                    value: value,
                    source: variable == nil ? .default : .environment,
                    place: variable.map { "$\($0)" }
                )
            )
        }
        let socket = AbsolutePath.of(BrokerSocketPath.listen(environment: environment, userID: geteuid()))
        add("broker.socket", socket, from: [BrokerSocketPath.variable, "RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"])
        add("broker.state_directory", directory, from: ["STATE_DIRECTORY", "XDG_STATE_HOME"])
        if let address = try? configuration.usbmuxdAddress(environment) {
            add("devices.usbmuxd", address.description, from: [ServerAddress.usbmuxdVariable])
        }
        return overrides
    }
}
