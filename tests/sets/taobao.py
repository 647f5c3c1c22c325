"""Small sets in the formats of Taobao's ads."""

import gzip

import numpy as np
import pytest

ADS = "0 3 0 1\n1 3 2 0\n2 0 1 1\n3 1 0 1\n"
PEOPLE = "0 0 2 1 2 0 2 0 3 \n1 4 1 1 1 2 2 0 0 \n"
CLICKS = {"train.txt": "0 1 2\n1 3 0\n", "test.txt": "0 3\n1 2\n", "u.item": ADS, "u.user": PEOPLE}
RAW = {
    "raw_sample.csv": "user,time_stamp,adgroup_id,pid,nonclk,clk\n"
    "900,80,77,430539_1007,0,1\n5,10,20,430548_1007,1,0\n5,30,77,430548_1007,0,1\n"
    "900,70,30,430539_1007,0,1\n5,30,20,430548_1007,1,0\n",
    "ad_feature.csv": "adgroup_id,cate_id,campaign_id,customer,brand,price\n"
    "77,6406,83237,1,95471,170.0\n20,392,83237,1,NULL,199.0\n30,392,83237,1,95471,38.5\n",
    "user_profile.csv": "userid,cms_segid,cms_group_id,final_gender_code,age_level,pvalue_level,"
    "shopping_level,occupation,new_user_class_level \n"
    "1,7,5,2,5,,3,0,3\n900,0,5,2,5,,3,0,3\n",
}


def written(folder, files, gzipped=False):
    folder.mkdir(parents=True)
    for name, text in files.items():
        if gzipped:
            (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / name).write_text(text)
    return folder


@pytest.fixture
def clicks(tmp_path):
    """Clicks by users who like one of four categories, and mostly popular ads."""
    random = np.random.default_rng(7)
    people, ads = 300, 600
    weights = 1 / np.sqrt(np.arange(20, ads + 20))
    lines = {"train.txt": [], "test.txt": []}
    for user in range(people):
        liked = weights * np.where(np.arange(ads) % 4 == user % 4, 20, 1)
        own = random.choice(ads, random.integers(6, 40), replace=False, p=liked / liked.sum())
        for name, part in (("train.txt", own[2:]), ("test.txt", own[:2])):
            lines[name].append(" ".join(map(str, [user, *part])))
    lines["u.item"] = [f"{ad} {ad % 4} {ad % 9} {ad % 2}" for ad in range(ads)]
    lines["u.user"] = [f"{u} {u % 5} {u % 3} 1 2 0 1 0 {u % 2} " for u in range(people)]
    files = {name: "\n".join(own) + "\n" for name, own in lines.items()}
    return written(tmp_path / "clicks", files)


@pytest.fixture
def impressions(tmp_path):
    """Impressions over eight days; users click ads of one of three categories."""
    random = np.random.default_rng(8)
    count, people, ads = 12_000, 120, 90
    users, shown = random.integers(0, people, count), random.integers(0, ads, count)
    clicked = random.random(count) < np.where(shown % 3 == users % 3, 0.6, 0.05)
    times = np.sort(random.integers(1_494_000_000, 1_494_000_000 + 8 * 86_400, count))
    events = zip(users, times, shown, clicked, strict=True)
    raw = [f"{u},{t},{5 * ad},430548_1007,{int(not c)},{int(c)}" for u, t, ad, c in events]
    features = [f"{5 * ad},{ad % 3},1,1,{'NULL' if ad % 2 else ad % 7},9.5" for ad in range(ads)]
    profiles = [f"{user},{user % 4},1,2,3,,1,0," for user in range(0, people, 2)]
    headers = {name: text.split("\n", 1)[0] for name, text in RAW.items()}
    bodies = (raw, features, profiles)
    files = {
        name: "\n".join([header, *lines]) + "\n"
        for (name, header), lines in zip(headers.items(), bodies, strict=True)
    }
    return written(tmp_path / "raw", files)
