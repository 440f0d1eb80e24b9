/// The schemas of the MCP routes. MCP defines its own messages; only their frame is described here.
enum MCPSchemas {
    static let text = #"""
        "MCPMessage":{"description":"A JSON-RPC 2.0 message of MCP 2024-11-05 to 2026-07-28, or a batch of 2025-03-26; a response may be sent as server-sent events","type":["object","array"]},
        "ToolList":{"type":"object","required":["schema","tools","stale","changed"],"properties":{
          "schema":{"const":1},"tools":{"type":"array","items":{"type":"object"}},
          "stale":{"type":"boolean"},"changed":{"type":"boolean"},
          "limit":{"type":"string","description":"the limit of the caller's grant; only these tools are listed"},
          "reason":{"type":"string"},"hint":{"type":"string"}}},
        "ToolCallRequest":{"type":"object","required":["tool"],"additionalProperties":false,"properties":{
          "tool":{"type":"string","minLength":1},"arguments":{"type":"object"},
          "waitSeconds":{"type":"integer","minimum":0,"maximum":60},
          "timeoutSeconds":{"type":"integer","minimum":1,"maximum":120},
          "maxPixels":{"type":"integer","minimum":0,"maximum":4096},
          "imageFormat":{"enum":["png","jpeg"]}}},
        "ToolAnswer":{"type":"object","required":["schema","result"],"properties":{
          "schema":{"const":1},"result":{"type":"object","required":["content"],
            "additionalProperties":true,"properties":{"content":{"type":"array"},"isError":{"type":"boolean"}}}}},
        "ServerCard":{"type":"object","required":["$schema","name","version","remotes"]},
        "Catalog":{"type":"object","required":["specVersion","entries"]}
        """#
}
