import Model

/// The tools of an app with which a person sees and operates its screen.
///
/// A tool is found by its name and by its schema: a tool of that name with other required arguments is another tool.
struct ScreenTools: Sendable {
    /// The names of the four coordinates of a swipe.
    struct SwipeArguments: Hashable, Sendable {
        let from: (x: String, y: String)
        let to: (x: String, y: String)

        fileprivate var names: [String] { [from.x, from.y, to.x, to.y] }

        static func == (one: Self, other: Self) -> Bool { one.names == other.names }
        func hash(into hasher: inout Hasher) { hasher.combine(names) }
    }

    /// The unit that a tool's declaration names.
    enum Unit: Hashable, Sendable {
        case points
        case pixels
    }

    /// Keys without a printable character, in the order in which people read them.
    enum Key: String, CaseIterable {
        /// Backspace (U+0008) and Tab.
        case editing = "keys"
        /// Delete forward (U+007F), as in `FBMapIfSpecialCharacter` of WebDriverAgent.
        case delete
        /// The arrows (U+F700 to U+F703), as AppKit and XCTest name these keys.
        case arrows

        /// The word in the description of the tool.
        fileprivate var word: String {
            switch self {
            case .editing: "backspace"
            case .delete: "delete"
            case .arrows: "arrows"
            }
        }

        fileprivate var name: String {
            switch self {
            case .editing: "Backspace and Tab"
            case .delete: "Delete"
            case .arrows: "the arrow keys"
            }
        }
    }

    struct Tool: Hashable, Sendable {
        let name: String
        /// Nil if the declaration names no unit.
        let unit: Unit?
        /// True if the coordinates must be whole numbers.
        let isWhole: Bool
        let isReadOnly: Bool?
    }

    private(set) var screenshot: Tool?
    private(set) var tap: Tool?
    private(set) var swipe: (tool: Tool, arguments: SwipeArguments, duration: (name: String, isSeconds: Bool)?)?
    private(set) var type: Tool?
    /// The keys that the tool that types presses for their characters, as its description says.
    private(set) var keys: [Key] = []
    /// The tools that report the size of the screen, in the unit of the coordinates.
    private(set) var windowSize: Tool?
    private(set) var deviceInfo: Tool?
    private(set) var launchContext: Tool?
    private(set) var elements: Tool?
    /// The impossible, with its reasons.
    private(set) var limits: [String] = []

    private static let screenshots = ["screenshot", "take_screenshot", "get_screenshot", "capture_screenshot", "shot"]
    private static let taps = ["tap_point", "tap", "tap_at", "tap_coordinates", "click_point", "click_at"]
    private static let swipes = ["swipe", "drag", "swipe_points", "swipe_coordinates"]
    private static let types = ["type_text", "type", "input_text", "enter_text"]
    private static let swipeArguments = [
        SwipeArguments(from: ("from_x", "from_y"), to: ("to_x", "to_y")),
        SwipeArguments(from: ("x1", "y1"), to: ("x2", "y2")),
        SwipeArguments(from: ("start_x", "start_y"), to: ("end_x", "end_y")),
        SwipeArguments(from: ("startX", "startY"), to: ("endX", "endY")),
        SwipeArguments(from: ("fromX", "fromY"), to: ("toX", "toY")),
    ]
    /// The arguments for the duration of a swipe. Those without a unit are seconds in every known server.
    private static let durations = [
        (name: "duration_ms", isSeconds: false), (name: "durationMs", isSeconds: false),
        (name: "milliseconds", isSeconds: false),
    ]

    init(_ tools: [JSONObject]) {
        let declared = tools.compactMap(Declaration.init)
        func first(_ names: [String], _ isSuitable: (Declaration) -> Bool) -> Declaration? {
            for name in names {
                if let found = declared.first(where: { $0.name == name && isSuitable($0) }) { return found }
            }
            return nil
        }
        screenshot = first(Self.screenshots) { $0.required.isEmpty }?.tool([])
        tap = first(Self.taps) { $0.has(numbers: ["x", "y"], andNothingRequiredBut: []) }?.tool(["x", "y"])
        for arguments in Self.swipeArguments {
            let names = arguments.names
            guard let found = first(Self.swipes, { $0.has(numbers: names, andNothingRequiredBut: ["duration"]) })
            else { continue }
            let duration = Self.durations.first { found.isNumber($0.name) }
            swipe = (found.tool(names), arguments, duration)
            break
        }
        let typing = first(Self.types) { $0.isText("text") && $0.required.isSubset(of: ["text"]) }
        type = typing?.tool([])
        // Other tools mention them for other reasons, such as the deletion of a text.
        if let typing, typing.mentions(Key.editing.word) { keys = Key.allCases.filter { typing.mentions($0.word) } }
        windowSize = first(["window_size"]) { $0.required.isEmpty }?.tool([])
        deviceInfo = first(["device_info"]) { $0.required.isEmpty }?.tool([])
        launchContext = first(["launch_context"]) { $0.required.isEmpty }?.tool([])
        elements = first(["elements"]) { $0.required.isEmpty }?.tool([])
        limits = limits(declared)
    }

    private func limits(_ declared: [Declaration]) -> [String] {
        func other(_ names: [String]) -> Declaration? { declared.first { names.contains($0.name) } }
        var limits: [String] = []
        if screenshot == nil { limits.append("no picture: the app has no tool for a screenshot of the whole screen") }
        if tap == nil {
            let named = declared.first { ["tap_element", "activate", "click"].contains($0.name) }
            limits.append(
                "no taps: the app has no tool to tap a point"
                    + (named.map { "; \($0.name) needs the identifier of an element" } ?? "")
            )
        }
        if let type {
            func names(_ keys: [Key]) -> String { keys.map(\.name).joined(separator: " and ") }
            let missing = Key.allCases.filter { !keys.contains($0) }
            if keys.isEmpty {
                limits.append(
                    "no keys: \(type.name) inserts text, so Backspace, Tab, Delete and the arrow keys do nothing"
                )
            } else if !missing.isEmpty {
                limits.append("not all keys: \(type.name) does not press \(names(missing))")
            }
        } else {
            let named = other(Self.types)
            limits.append(
                "no typing: "
                    + (named.map {
                        "\($0.name) needs \($0.required.subtracting(["text"]).sorted().joined(separator: ", "))"
                    }
                        ?? "the app has no tool to type text")
            )
        }
        if swipe == nil {
            let scrolls = other(["scroll"]) != nil
            limits.append(
                "no swipes: the app has no tool to swipe between points"
                    + (scrolls ? "; scroll has directions only" : "")
            )
        }
        return limits.map { SanitizedText($0, limit: 300).text }
    }
}

/// The part of a tool's declaration that decides whether the tool is suitable.
private struct Declaration {
    let name: String
    let required: Set<String>
    private let properties: JSONObject
    private let description: String
    private let isReadOnly: Bool?

    init?(_ tool: JSONObject) {
        guard let name = tool["name"]?.string else { return nil }
        self.name = name
        let schema = tool["inputSchema"]
        properties = schema?["properties"]?.object ?? [:]
        required = Set(schema?["required"]?.array?.compactMap(\.string) ?? [])
        description = tool["description"]?.string ?? ""
        isReadOnly = tool["annotations"]?["readOnlyHint"]?.bool
    }

    /// Returns whether the arguments are numbers, and no other argument is required.
    func has(numbers: [String], andNothingRequiredBut others: Set<String>) -> Bool {
        numbers.allSatisfy(isNumber) && required.subtracting(numbers).isSubset(of: others)
    }

    func isNumber(_ name: String) -> Bool { ["number", "integer"].contains(properties[name]?["type"]?.string ?? "") }

    func mentions(_ word: String) -> Bool { description.lowercased().contains(word) }

    func isText(_ name: String) -> Bool { properties[name]?["type"] == "string" }

    func tool(_ coordinates: [String]) -> ScreenTools.Tool {
        let words = ([description] + coordinates.compactMap { properties[$0]?["description"]?.string })
            .joined(separator: " ").lowercased()
        // AppReveal's text is "logical-point coordinates (NOT device pixels)".
        let isPoints = words.contains("point coordinates") || words.contains("logical") || words.contains("in points")
        let unit: ScreenTools.Unit? = isPoints ? .points : words.contains("pixel") ? .pixels : nil
        return ScreenTools.Tool(
            name: name,
            unit: unit,
            isWhole: coordinates.contains { properties[$0]?["type"] == "integer" },
            isReadOnly: isReadOnly
        )
    }
}
